"""The one way out: every download of the project goes through ``Fetcher``.

Pictures, voice, files, HTTP tools and addresses that a model wrote all name a server
that somebody else chose. Whoever chooses it must not reach what only this machine can
reach, nor hold or fill it. Hence, for every request and again after every redirect:

* ``http`` and ``https`` only, any port, no user name or password in the URL (``urls``).
* The name is resolved once. Addresses that are not public are left out, unless
  ``FETCH_ALLOW`` lists them (``addresses``, ``allow_list``, ``destinations``). What counts
  is what the resolver says, never how a host is spelt: ``0x7f.1`` and ``localhost.`` are
  found out like any other name.
* Only the addresses that passed are dialled (``pinning``): a name that answers otherwise
  the second time is not asked a second time. TLS verifies the name.
* At most five redirects. What the caller sent along is not sent to another origin, and
  never in the clear after it was encrypted (``redirects``).
* No cookies, no referrer, no proxies or credentials from the environment.
* Bytes are counted as they come and again as they are unpacked, in pieces that do not
  hold up the event loop, one at a time over all downloads (``body``). One time limit
  counts from the call to the last byte.

What goes wrong is a ``FetchError`` (``errors``), with a sentence for the model that names no
address.
"""
