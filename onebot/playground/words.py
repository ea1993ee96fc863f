"""What the script of the playground says, in the reader's language."""

from django.utils.translation import gettext as _


def script_words() -> dict[str, str]:
    """The texts by the names that the script has for them; ``{name}`` is filled there."""
    return {**_connection(), **_chats(), **_messages(), **_notices()}


def _connection() -> dict[str, str]:
    return {
        "connecting": _("Connecting…"),
        "connected": _("Connected"),
        "closed": _("Not connected; trying again in {seconds} s"),
        "refused": _("The server did not let this page in; trying again in {seconds} s"),
        "replaced": _("Opened in another tab: this one is not connected any more."),
        "forbidden": _("You may not use the playground any more, or your sign-in has ended."),
        "signedOut": _("Your sign-in has ended: load the page again."),
        "cutByFailure": _("Disconnected, as chosen"),
        "notSent": _("Not sent: the playground is not connected."),
        "eraseAsk": _("Erase all chats of the playground, with everything on record of them?"),
        "erased": _("{count} messages were erased."),
        "eraseFailed": _("The playground could not be erased; try again."),
        "storageFull": _("Pictures and voice are shown until the page is loaded again."),
    }


def _chats() -> dict[str, str]:
    return {
        "me": _("Me"),
        "ming": _("Xiao Ming"),
        "hong": _("Xiao Hong"),
        "group": _("Test group"),
        "privateChat": _("private"),
        "groupChat": _("group, {count} members"),
        "owner": _("group owner"),
        "admin": _("administrator"),
        "member": _("member"),
        "botOwner": _("owner of the bot"),
        "stranger": _("not a friend"),
        "edit": _("Edit {name}"),
        "taken": _("There is one with this id already."),
        "everyone": _("everyone"),
        "bot": _("bot"),
        "typing": _("is typing…"),
    }


def _messages() -> dict[str, str]:
    return {
        "quote": _("Quote"),
        "recall": _("Recall"),
        "select": _("Choose"),
        "showRun": _("Run"),
        "recalled": _("{name} recalled a message"),
        "lostQuote": _("a message that is not here"),
        "image": _("picture"),
        "voice": _("voice"),
        "video": _("video"),
        "file": _("file"),
        "save": _("Save {name}"),
        "gone": _("not kept after loading the page again"),
        "forwardOf": _("Chat history"),
        "messages": _("{count} messages"),
        "chosen": _("{count} chosen"),
        "empty": _("Nothing was said here yet."),
        "tooLarge": _("{name} is too large: {limit} MiB at most."),
        "remove": _("Remove {name}"),
        "record": _("Record voice"),
        "stop": _("Stop recording"),
        "noMicrophone": _("The browser gives this page no microphone."),
        "part": _("{count} parts"),
        "elsewhere": _("loaded from {address} by real clients"),
        "reaction": _("reaction"),
        "peopleFound": _("{count} to mention: arrow keys choose, Enter takes, Escape closes"),
    }


def _notices() -> dict[str, str]:
    return {
        "poked": _("{name} poked {target}"),
        "joined": _("{name} joined the group"),
        "muted": _("The bot is muted here."),
        "unmuted": _("The bot may speak here again."),
        "unmute": _("Lift the mute"),
        "failure": _("Answered with a failure: {action} ({failure})"),
        "unknownAction": _("An action that the playground does not know: {action}"),
        "noChat": _("A message for a chat that is not here: {chat}"),
        "muteFailure": _("muted"),
        "timeoutFailure": _("no response"),
        "errorFailure": _("error"),
        "riskFailure": _("error"),
        "slowFailure": _("slow"),
        "disconnectFailure": _("disconnected"),
    }
