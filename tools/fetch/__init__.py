"""The only way out: every download of the project goes through ``Fetcher``.

Pictures, voice, files, HTTP tools and addresses that a model wrote all name a server that a
stranger may have chosen. That stranger must not reach what only this machine can reach, and must
not block this machine or fill its memory or disk. So these rules hold for every request and again
after every redirect:

* ``http`` and ``https`` only, any port, no user name or password in the URL.
* The name is resolved once. Addresses that are not public are left out, unless ``FETCH_ALLOW``
  lists them (``allow_list``, ``destinations``). Only the resolved address counts,
  never the spelling of a host: ``0x7f.1`` and ``localhost.`` are checked like any other name.
* Only the addresses that passed are dialled: a name is never resolved a second time,
  when it could give another answer. TLS verifies the name.
* At most five redirects. What the caller sent along is not sent to another origin, and
  never in the clear after it was encrypted.
* No cookies, no referrer, no proxies or credentials from the environment.
* Bytes are counted when they arrive and again when they are decompressed, in pieces that do not
  block the event loop, one at a time over all downloads. One time limit applies from the
  call to the last byte.

Every error is a ``FetchError`` (``request``), with a sentence for the model that names no address.
"""
