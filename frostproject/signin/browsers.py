"""Which browser a User-Agent is of, in the words that people know it by. Pure."""

import re

#: The first that is found counts: most browsers also name those that they want to be taken for.
BROWSERS = (
    ("Edge", re.compile(r"\bEdg(?:e|A|iOS)?/")),
    ("Opera", re.compile(r"\bOPR/")),
    ("Samsung Internet", re.compile(r"\bSamsungBrowser/")),
    ("WeChat", re.compile(r"\bMicroMessenger/")),
    ("QQ Browser", re.compile(r"\bM?QQBrowser/")),
    ("QQ", re.compile(r"\bQQ/")),
    ("Firefox", re.compile(r"\b(?:Firefox|FxiOS)/")),
    ("Chrome", re.compile(r"\b(?:Chrome|CriOS|HeadlessChrome)/")),
    ("Safari", re.compile(r"\bVersion/[\d.]+.* Safari/")),
)
SYSTEMS = (
    ("HarmonyOS", re.compile(r"\b(?:HarmonyOS|OpenHarmony)\b")),
    ("Windows", re.compile(r"\bWindows NT\b")),
    ("iPhone", re.compile(r"\biPhone\b")),
    ("iPad", re.compile(r"\biPad\b")),
    ("Android", re.compile(r"\bAndroid\b")),
    ("macOS", re.compile(r"\bMac OS X\b")),
    ("ChromeOS", re.compile(r"\bCrOS\b")),
    ("Linux", re.compile(r"\bLinux\b")),
)


def describe_browser(user_agent: str) -> str:
    """Such as ``Firefox · Windows``; "" for what is no known browser."""
    found = [
        next((name for name, sign in known if sign.search(user_agent)), "")
        for known in (BROWSERS, SYSTEMS)
    ]
    return " · ".join(filter(None, found)) if found[0] else ""
