"""The probe room: finds out what a model endpoint really does."""
