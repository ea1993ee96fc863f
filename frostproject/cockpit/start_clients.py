"""What to enter in a OneBot client so that it connects here: for each client its steps and, where
it has a file, its configuration. Pure.

The names of settings are those of NapCat's, SnowLuma's and LLBot's web pages and files, of
Lagrange's ``appsettings.json``, of go-cqhttp's and Gensokyo's ``config.yml`` and of onebots'
``config.yaml``, as docs/clients.md has them.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy

PATH = "/ws/frostagent"
#: What stands for the token until it is shown.
HIDDEN = "••••••••••••••••"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
DOCKER_HOST = "host.docker.internal"


#: Where a client can run, seen from here.
SITES: tuple[dict[str, str | Promise], ...] = (
    {"name": "here", "title": gettext_lazy("On the same machine")},
    {"name": "docker", "title": gettext_lazy("In Docker on the same machine")},
    {"name": "elsewhere", "title": gettext_lazy("On another machine")},
)


class ClientSetting(NamedTuple):
    """One field of a client's page: what it is called there, and what to enter."""

    name: str
    value: str
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class ClientGuide:
    """A client, and how it is set up; ``configure`` writes its file from address and token."""

    name: str
    title: str
    steps: Callable[[], Sequence[str]]
    settings: Callable[[str, str], Sequence[ClientSetting]]
    file: str
    configure: Callable[[str, str], str]


def client_address(scheme: str, host: str, site: str, own: Sequence[str]) -> str:
    """The address for a client at ``site``; ``host`` is the one that the browser asks, with its
    port, and ``own`` are the names and addresses of this machine.

    A browser that asks this machine by a loopback name does not know the one that others need.
    """
    parts = urlsplit(f"//{host}")
    port = f":{parts.port}" if parts.port else ""
    is_loopback = (parts.hostname or "") in LOOPBACK
    if site == "docker" and is_loopback:
        return f"{scheme}://{DOCKER_HOST}{port}{PATH}"
    if site == "elsewhere" and is_loopback:
        found = next(
            (
                name
                for name in own
                if name.replace(".", "").isdigit() and not name.startswith("127.")
            ),
            "",
        )
        return f"{scheme}://{found or _('ADDRESS-OF-THIS-MACHINE')}{port}{PATH}"
    if site == "here" and parts.hostname == "localhost":
        host = f"127.0.0.1{port}"  # some clients try ::1 first, where nothing listens
    return f"{scheme}://{host}{PATH}"


def _lagrange_file(url: str, token: str) -> str:
    parts = urlsplit(url)
    implementation = {
        "Type": "ReverseWebSocket",
        "Host": parts.hostname or "",
        "Port": parts.port or (443 if parts.scheme == "wss" else 80),
        "Suffix": parts.path,
        "ReconnectInterval": 5000,
        "HeartBeatInterval": 5000,
        "HeartBeatEnable": True,
        "AccessToken": token,
    }
    return _json({"Implementations": [implementation]})


def _gocq_file(url: str, token: str) -> str:
    quoted = token.replace("'", "''")
    return f"""message:
  post-format: array
  report-self-message: false

default-middlewares: &default
  access-token: '{quoted}'

servers:
  - ws-reverse:
      universal: {url}
      reconnect-interval: 3000
      middlewares:
        <<: *default
"""


def _gensokyo_file(url: str, token: str) -> str:
    return f"""settings:
  ws_address: [{_json(url)}]
  ws_token: [{_json(token)}]
  app_id: 0              # of q.qq.com
  token: "APP_TOKEN"
  client_secret: "APP_SECRET"
  text_intent: ["GroupATMessageEventHandler", "C2CMessageEventHandler"]
  reconnect_times: 9999
  launch_reconnect_times: 9999
  heart_beat_interval: 10
  array: true
  string_ob11: false
  add_at_group: true
  hash_id: true
  lazy_message_id: true
"""


def _onebots_file(url: str, token: str) -> str:
    return f"""port: 6727
qq.my_bot:
  appid: '0'             # of q.qq.com
  secret: 'APP_SECRET'
  mode: websocket
  sandbox: false
  intents: ['GROUP_AND_C2C_EVENT']
  onebot.v11:
    use_http: false
    use_ws: true
    access_token: '{token.replace("'", "''")}'
    heartbeat_interval: 5
    post_message_format: array
    ws_reverse: ['{url}']
"""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


GUIDES = (
    ClientGuide(
        "napcat",
        "NapCat",
        lambda: (
            _("Open NapCat's WebUI → Network → New → WebSocket client."),
            _("Switch it on, and enter what stands below. The message format is “array”."),
            _("Save. It dials by itself, and tries again every few seconds."),
        ),
        lambda url, token: (
            ClientSetting("URL", url),
            ClientSetting("Token", token, is_secret=True),
            ClientSetting("messagePostFormat", "array"),
            ClientSetting("heartInterval", "30000"),
            ClientSetting("reconnectInterval", "5000"),
        ),
        "config/onebot11_QQ.json",
        lambda url, token: _json(
            {
                "network": {
                    "websocketClients": [
                        {
                            "enable": True,
                            "name": "frostagent",
                            "url": url,
                            "reportSelfMessage": False,
                            "messagePostFormat": "array",
                            "token": token,
                            "debug": False,
                            "heartInterval": 30000,
                            "reconnectInterval": 5000,
                        }
                    ]
                }
            }
        ),
    ),
    ClientGuide(
        "llbot",
        "LLBot (LLOneBot)",
        lambda: (
            _("Open LLBot's WebUI → OneBot 11 → add a reverse WebSocket (ws-reverse)."),
            _("Switch on OneBot 11 as a whole and this connection, and enter what stands below."),
            _("Save. It dials by itself, and tries again every few seconds."),
        ),
        lambda url, token: (
            ClientSetting("url", url),
            ClientSetting("token", token, is_secret=True),
            ClientSetting("messageFormat", "array"),
            ClientSetting("heartInterval", "30000"),
            ClientSetting("reportOfflineMessage", "false"),
        ),
        "config_QQ.json",
        lambda url, token: _json(
            {
                "ob11": {
                    "enable": True,
                    "connect": [
                        {
                            "type": "ws-reverse",
                            "enable": True,
                            "url": url,
                            "token": token,
                            "messageFormat": "array",
                            "heartInterval": 30000,
                            "reportSelfMessage": False,
                            "reportOfflineMessage": False,
                            "debug": False,
                        }
                    ],
                }
            }
        ),
    ),
    ClientGuide(
        "snowluma",
        "SnowLuma",
        lambda: (
            _("Open SnowLuma's WebUI → OneBot → add a WebSocket client."),
            _("Switch it on, and enter what stands below. The message format is “array”."),
            _("Or save the file below as config/onebot.json: it counts for all its accounts."),
        ),
        lambda url, token: (
            ClientSetting("url", url),
            ClientSetting("accessToken", token, is_secret=True),
            ClientSetting("role", "Universal"),
            ClientSetting("messageFormat", "array"),
            ClientSetting("reconnectIntervalMs", "5000"),
        ),
        "config/onebot.json",
        lambda url, token: _json(
            {
                "networks": {
                    "httpServers": [],
                    "httpClients": [],
                    "wsServers": [],
                    "wsClients": [
                        {
                            "name": "frostagent",
                            "enabled": True,
                            "url": url,
                            "role": "Universal",
                            "accessToken": token,
                            "messageFormat": "array",
                            "reportSelfMessage": False,
                            "reconnectIntervalMs": 5000,
                        }
                    ],
                },
                "statusCommand": {"enabled": False},
            }
        ),
    ),
    ClientGuide(
        "gensokyo",
        gettext_lazy("Gensokyo (official bot)"),  # type: ignore[arg-type] # words like the rest
        lambda: (
            _("Make a bot at q.qq.com; its AppID, token and secret go into the file below."),
            _("Save the file as config.yml beside the program, and start it."),
            _("It hears what mentions the bot, and answers within QQ's limits for official bots."),
        ),
        lambda _url, _token: (),
        "config.yml",
        _gensokyo_file,
    ),
    ClientGuide(
        "onebots",
        gettext_lazy("onebots (official bot)"),  # type: ignore[arg-type] # words like the rest
        lambda: (
            _("Make a bot at q.qq.com; its AppID and secret go into the file below."),
            _("Start it: onebots -c config.yaml -r qq -p onebot-v11. Do not publish its port."),
            _(
                "It takes mentions off: on the account's page switch on “every group message is "
                "for it”. Keep its database: without it all people and groups are new."
            ),
        ),
        lambda _url, _token: (),
        "config.yaml",
        _onebots_file,
    ),
    ClientGuide(
        "lagrange",
        "Lagrange.OneBot",
        lambda: (
            _("Lagrange.OneBot has ended; for something new take NapCat, SnowLuma or LLBot."),
            _("Open appsettings.json beside the program; the address stands there in three parts."),
            _("Put the part below in place of “Implementations”, and start it again."),
            _("Lagrange V2 speaks Milky alone, which is no OneBot: take Lagrange.OneBot (V1)."),
        ),
        lambda _url, _token: (),
        "appsettings.json",
        _lagrange_file,
    ),
    ClientGuide(
        "go-cqhttp",
        "go-cqhttp",
        lambda: (
            _("Open config.yml beside the program and take over the part below."),
            _("Under “servers” leave nothing else, and start it again."),
        ),
        lambda _url, _token: (),
        "config.yml",
        _gocq_file,
    ),
    ClientGuide(
        "other",
        gettext_lazy("another client"),  # type: ignore[arg-type] # words like the rest
        lambda: (
            _("Choose “WebSocket client” or “reverse WebSocket”, universal, OneBot 11."),
            _("A client that takes an address alone is given the token behind it, as below."),
        ),
        lambda url, token: (
            ClientSetting("URL", url),
            ClientSetting("Token", token, is_secret=True),
            ClientSetting(
                _("URL with the token"),
                f"{url}?access_token={token if token == HIDDEN else quote(token, safe='')}",
                is_secret=True,
            ),
        ),
        "",
        lambda _url, _token: "",
    ),
)


def find_guide(name: str) -> ClientGuide:
    """The guide of the client ``name``; NapCat's for one that is not known."""
    return next((guide for guide in GUIDES if guide.name == name), GUIDES[0])
