"""What can go wrong with a download, for whom each text is, and whether trying again makes sense.

::

    FetchError
    ├── RequestRefused      the URL or a header cannot be sent as it is written
    ├── DestinationRefused  the server's address is not public, and FETCH_ALLOW does not list it
    ├── RedirectRefused     too many redirects, or one that would give away what was sent
    ├── NameUnknown         there is no such name
    ├── ConnectionFailed    no connection, or one that ended too early (retryable)
    ├── TlsRefused          the server could not prove its name
    ├── TookTooLong         the time is up (retryable)
    ├── TooLarge            more bytes than the caller takes
    ├── UnreadableAnswer    not HTTP, or packed in a way that cannot be undone
    └── StatusRefused       a download was answered with anything but 2xx (retryable: 408, 425,
                            429, 5xx)

``str(error)`` is for the operator and may name addresses; ``error.text`` is for the
model and names none, since what a name of the inside resolves to is not the chat's affair.
"""

RETRYABLE_STATUSES = frozenset({408, 425, 429})


class FetchError(Exception):
    """A download that failed. ``is_retryable``: the same request may succeed later."""

    text = "该网址无法访问。"
    is_retryable = False

    def __init__(self, operator: str, text: str = "") -> None:
        super().__init__(operator)
        self.text = text or self.text


class RequestRefused(FetchError):  # noqa: N818 - it says what happened, as do all below
    """Nothing was sent: the request is not one that this project makes."""

    text = "请求的写法不正确，请改正后再试。"


class DestinationRefused(FetchError):  # noqa: N818
    """Nothing was sent: the host has no address that downloads may reach."""

    text = "该网址指向内部网络或保留地址，不允许访问，请不要重试。"


class RedirectRefused(FetchError):  # noqa: N818
    """The server sent the request elsewhere, and it was not followed."""

    text = "该网址的跳转次数过多或不安全，无法访问，请不要重试。"


class NameUnknown(FetchError):  # noqa: N818
    """The resolver knows no address of the host."""

    text = "找不到该网址的域名，请检查网址是否正确。"


class ConnectionFailed(FetchError):  # noqa: N818
    """The server could not be reached, or went away before its answer was complete."""

    text = "无法连接到该网址的服务器，或连接中断，可以稍后再试。"
    is_retryable = True


class TlsRefused(FetchError):  # noqa: N818
    """The certificate is not valid for the name, or no encryption could be agreed on."""

    text = "该网址的安全证书无效，无法访问，请不要重试。"


class TookTooLong(FetchError):  # noqa: N818
    """The last byte had not come when the time was up."""

    is_retryable = True

    def __init__(self, operator: str, seconds: float) -> None:
        super().__init__(operator, f"访问该网址超过 {seconds:g} 秒仍未完成，可以稍后再试。")


class TooLarge(FetchError):  # noqa: N818
    """The answer, as sent or unpacked, has more than ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(
            f"the answer has more than {max_bytes} bytes",
            f"该网址的内容超过 {_size(max_bytes)}，请不要重试。",
        )


class UnreadableAnswer(FetchError):  # noqa: N818
    """What came is not a complete HTTP answer in an encoding that was asked for."""

    text = "该网址返回的内容无法识别，请不要重试。"


class StatusRefused(FetchError):  # noqa: N818
    """The server answered, but not with what was asked for."""

    def __init__(self, operator: str, status: int) -> None:
        self.status = status
        self.is_retryable = status in RETRYABLE_STATUSES or status >= 500
        advice = "可以稍后再试" if self.is_retryable else "请不要重试"
        super().__init__(operator, f"该网址返回了错误（HTTP {status}），{advice}。")


def _size(count: int) -> str:
    return f"{count / 2**20:.4g} MiB" if count >= 2**20 else f"{count} 字节"
