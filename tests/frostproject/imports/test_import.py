"""``manage.py import`` and its page: what becomes of the data of other programs."""

import copy
import io
import json
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import translation

from agent.media.image_reader import make_portrait
from agent.models import Manners, ModelEndpoint, Note, Persona, PersonaPicture
from agent.pages import persona_file
from frostproject.imports import reading
from frostproject.imports.astrbot import read_astrbot
from frostproject.imports.plan import Found
from onebot.models import Bot
from tests import zygote
from tests.admin.record import logged_in
from tests.environment import clean_environment
from tests.frostproject.imports.samples import (
    CARD,
    CONFIG,
    KEY,
    card_png,
    write_astrbot,
    write_langbot,
)
from tests.pictures import BLUE, colour_of, noise, opened, picture, saved
from tools.models import HttpTool, McpServer, ToolConfigChange

pytestmark = pytest.mark.django_db


def run(path: Path, *options: str) -> str:
    out = io.StringIO()
    with translation.override("en"):
        call_command("import", str(path), *options, stdout=out)
    return out.getvalue()


def test_preview_shows_every_row_without_keys_and_changes_nothing(tmp_path: Path) -> None:
    shown = run(write_astrbot(tmp_path / "data"))
    assert "[new] model endpoint: ds" in shown
    assert "key: yes" in shown
    assert "[new] persona: 霜降" in shown
    assert "claude: it speaks another protocol" in shown
    assert KEY not in shown
    assert not ModelEndpoint.objects.filter(name="ds").exists()
    assert not ToolConfigChange.objects.exists()


def test_it_may_come_before_the_first_start(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / ".env").write_text("SYSTEM_PROMPT=你是霜降。\nBOT_NAME=霜降\n", encoding="utf-8")
    fixed = {"DJANGO_SETTINGS_MODULE": "frostproject.settings", "LANGUAGE_CODE": "en"}
    env = clean_environment(FROST_DATA_DIR=str(tmp_path / "data"), **fixed)
    said = zygote.run([sys.executable, "manage.py", "import", str(tmp_path / ".env")], env)
    assert said.returncode == 0, said.stderr
    assert "[new] persona: 霜降" in said.stdout


def test_astrbot_becomes_rows_with_a_history_and_sealed_keys(tmp_path: Path) -> None:
    Bot.objects.create(self_id="30001")
    run(write_astrbot(tmp_path / "data"), "--yes")
    endpoint = ModelEndpoint.objects.get(name="ds")
    assert (endpoint.preset, endpoint.keys, endpoint.enabled) == ("deepseek", [KEY], True)
    assert KEY not in endpoint.sealed_keys
    assert endpoint.timeout_seconds == 120
    assert not ModelEndpoint.objects.get(name="old").enabled
    persona = Persona.objects.get(name="霜降")
    assert (persona.prompt, persona.examples) == ("你是霜降。", [["你好", "嗷呜！"]])
    assert (persona.tool_choice, persona.tools, persona.is_default) == ("only", "", False)
    assert Manners.objects.get(name="AstrBot").wake_prefixes == "/\n小霜"
    allowed = Manners.objects.get(account="30001", answered="everybody")
    assert allowed.chat_keys == ("group:20001", "private:10005")
    assert not McpServer.objects.get(name="web").enabled
    assert ToolConfigChange.objects.filter(name="ds").exists()


def test_allow_list_stays_behind_by_name_without_an_account(tmp_path: Path) -> None:
    shown = run(write_astrbot(tmp_path / "data"), "--yes")
    assert "AstrBot: allowed group:20001 private:10005: no account" in shown
    assert not Manners.objects.exclude(account="").exists()


def test_settings_of_astrbot_that_cannot_come_along_are_named_without_values(
    tmp_path: Path,
) -> None:
    folder = write_astrbot(tmp_path / "data")
    config = copy.deepcopy(CONFIG)
    config["provider_settings"] |= {"max_context_length": 7, "fallback_chat_models": ["old"]}
    config["platform_settings"] |= {"path_mapping": ["a:b"], "reply_prefix": ""}
    config["provider_sources"].append({"id": "spare", "key": ["sk-unseen"]})
    config["provider"][1] |= {"gm_thinking": {"budget": 1}, "custom_extra_body": {"top_k": 3}}
    config["t2i"] = True
    (folder / "cmd_config.json").write_text(json.dumps(config))
    shown = run(folder, "--yes")
    for line in (
        "provider_settings: max_context_length: settings",
        "platform_settings: path_mapping: settings",
        "provider_sources spare: no model there asks it",
        "ds: gm_thinking: settings",
        "霜降: custom_error_message: settings",
        "t2i: settings",
    ):
        assert line in shown
    assert "sk-unseen" not in shown
    assert ModelEndpoint.objects.get(name="ds").extra_body == {"top_k": 3}


def test_models_of_astrbot_come_in_the_order_in_which_they_are_asked() -> None:
    found = Found()
    rows = [{"id": name, "type": "openai_chat_completion"} for name in ("d", "b", "c", "a")]
    asked = {"default_provider_id": "a", "fallback_chat_models": ["b", "a", "c"]}
    read_astrbot({"provider": rows, "provider_settings": asked}, {}, found)
    assert [row.name for row in found.rows] == ["a", "b", "c", "d"]


def test_settings_of_langbot_that_cannot_come_along_are_named(tmp_path: Path) -> None:
    shown = run(write_langbot(tmp_path / "langbot.db"))
    assert "Pipe: ai: max-round: settings" in shown
    assert "Pipe: trigger: ignore-rules: settings" in shown


def test_second_import_leaves_what_is_the_same_and_what_is_not(tmp_path: Path) -> None:
    folder = write_astrbot(tmp_path / "data")
    run(folder, "--yes")
    Persona.objects.filter(name="霜降").update(prompt="mine")
    shown = run(folder, "--yes")
    assert "[there already] model endpoint: ds" in shown
    assert "[name taken] persona: 霜降" in shown
    assert "0 rows were made" in shown
    assert Persona.objects.get(name="霜降").prompt == "mine"


def test_langbot_becomes_rows_and_its_persona_asks_its_model(tmp_path: Path) -> None:
    Bot.objects.create(self_id="30001")
    shown = run(write_langbot(tmp_path / "langbot.db"), "--yes")
    assert "Pipe: group_*" in shown
    persona = Persona.objects.get(name="Pipe")
    assert persona.prompt == "你是小霜。"
    assert [one.endpoint.name for one in persona.choices.all()] == ["chat"]
    assert ModelEndpoint.objects.get(name="chat").can_see
    manners = Manners.objects.get(name="LangBot Pipe")
    assert (manners.wake_prefixes, manners.wake_chance) == ("ai", 10)
    assert Manners.objects.get(account="30001").denied_people == "10009"


def test_frostagent_becomes_rows_and_notes_for_nobody_else(tmp_path: Path) -> None:
    Bot.objects.create(self_id="30001")
    env = "UPSTREAM_ENDPOINT=https://api.example.com/v1\nMODEL_NAME=m\nUPSTREAM_API_KEY=sk-1\n"
    (tmp_path / ".env").write_text(env + "SYSTEM_PROMPT=你是狐\nBOT_NAME=霜降狐\nLISTEN_ADDR=:1\n")
    entries = [{"owner": "10001", "content": "喜欢猫", "visibility": "public"}]
    entries += [{"owner": "group:20001", "content": "周五聚会"}]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "brain.json").write_text(json.dumps({"entries": entries}))
    shown = run(tmp_path, "--yes")
    assert "LISTEN_ADDR: settings" in shown
    assert Persona.objects.get(name="霜降狐").prompt == "你是狐"
    assert ModelEndpoint.objects.get(name="FrostAgent m").keys == ["sk-1"]
    assert Note.objects.get(owner_id="10001").visibility == Note.Visibility.PERSON
    assert Note.objects.get(owner_id="20001").chat == "group:20001"


def test_newest_card_of_a_picture_becomes_a_persona_without_notes_of_its_maker(
    tmp_path: Path,
) -> None:
    newer = CARD | {"spec": "chara_card_v3", "data": CARD["data"] | {"nickname": "霜霜"}}
    (tmp_path / "card.png").write_bytes(card_png(chara=CARD, ccv3=newer))
    shown = run(tmp_path / "card.png", "--yes")
    persona = Persona.objects.get(name="霜降")
    assert persona.prompt == "霜霜是一只狐狸。"
    assert persona.examples == [["你好", "你好呀"]]
    assert "霜降: 尾巴" in shown
    assert "creator_notes" in shown


def test_prompt_without_a_name_is_named_after_its_file(tmp_path: Path) -> None:
    (tmp_path / "fox.json").write_text('{"system_prompt": "你是谁"}')
    run(tmp_path / "fox.json", "--yes")
    assert Persona.objects.get(name="fox").prompt == "你是谁"


def test_openapi_becomes_tools_that_are_switched_off(tmp_path: Path) -> None:
    text = "openapi: 3.0.0\ninfo: {title: t, version: '1'}\nservers: [{url: 'https://a.example'}]\n"
    (tmp_path / "a.yaml").write_text(text + "paths: {/a: {get: {operationId: getA}}}\n")
    run(tmp_path / "a.yaml", "--yes")
    assert not HttpTool.objects.get(name="get_a").enabled


def test_own_persona_goes_out_and_in_again(tmp_path: Path) -> None:
    row = Persona.objects.create(
        name="狐", prompt="你是{bot_name}", examples=[["a", "b"]], quote=True
    )
    answer = logged_in().get(reverse("admin:agent_persona_export", args=(row.pk,)))
    (tmp_path / "fox.json").write_bytes(answer.content)
    row.delete()
    run(tmp_path / "fox.json", "--yes")
    again = Persona.objects.get(name="狐")
    assert (again.prompt, again.examples, again.quote) == ("你是{bot_name}", [["a", "b"]], True)


def test_picture_of_a_persona_goes_out_and_in_again_the_same(tmp_path: Path) -> None:
    browser, row = logged_in(), Persona.objects.create(name="狐", prompt="p")
    drawn = noise((120, 160)).convert("RGBA")
    drawn.putalpha(90)
    PersonaPicture.objects.create(persona=row, content=make_portrait(saved(drawn)))
    kept = persona_file.load_picture(row)
    address = reverse("admin:agent_persona_export", args=(row.pk,))
    (tmp_path / "fox.json").write_bytes(browser.get(address).content)
    assert "[there already] persona: 狐" in run(tmp_path / "fox.json", "--yes")
    row.delete()
    assert "Picture: " in run(tmp_path / "fox.json")
    with (tmp_path / "fox.json").open("rb") as file:
        shown = browser.post(reverse("admin:import"), {"file": file})
    browser.post(reverse("admin:import"), {"sealed": shown.context["sealed"]})
    again = persona_file.load_picture(Persona.objects.get(name="狐"))
    assert again == kept
    assert opened(again).tobytes() == drawn.tobytes()
    PersonaPicture.objects.all().delete()
    assert "[name taken] persona: 狐" in run(tmp_path / "fox.json", "--yes")
    assert not PersonaPicture.objects.exists()


def test_picture_of_a_card_comes_along_without_its_card(tmp_path: Path) -> None:
    (tmp_path / "card.png").write_bytes(card_png(chara=CARD))
    assert "Picture: " in run(tmp_path / "card.png", "--yes")
    kept = persona_file.load_picture(Persona.objects.get(name="霜降"))
    assert (opened(kept).size, opened(kept).info) == ((1, 1), {})
    assert "[there already] persona: 霜降" in run(tmp_path / "card.png", "--yes")


def test_picture_beyond_the_most_stays_behind_by_name(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(reading, "MOST_PICTURES", 1)
    for name in ("a", "b"):
        (tmp_path / f"{name}.png").write_bytes(card_png(chara=CARD | {"data": {"name": name}}))
    shown = run(tmp_path, "--yes")
    assert "b.png: its picture; at most 1 come along" in shown
    assert [one.persona.name for one in PersonaPicture.objects.all()] == ["a"]
    assert Persona.objects.filter(name="b").exists()


def upload(folder: Path) -> SimpleUploadedFile:
    file = shutil.make_archive(str(folder.parent / "packed"), "zip", folder.parent, folder.name)
    return SimpleUploadedFile("packed.zip", Path(file).read_bytes())


def test_page_shows_rows_and_makes_them_when_confirmed(tmp_path: Path) -> None:
    browser, url = logged_in(), reverse("admin:import")
    shown = browser.post(url, {"file": upload(write_astrbot(tmp_path / "data"))})
    page = shown.content.decode()
    assert "deepseek-chat" in page
    assert KEY not in page
    assert not ModelEndpoint.objects.filter(name="ds").exists()
    made = browser.post(url, {"sealed": shown.context["sealed"]})
    assert made.status_code == 200
    assert KEY not in made.content.decode()
    assert ModelEndpoint.objects.get(name="ds").keys == [KEY]
    assert ToolConfigChange.objects.filter(name="ds", author__isnull=False).exists()


def browser_of(*permissions: str) -> Client:
    """That of somebody with these permissions."""
    user = User.objects.create_user("one", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    browser = Client()
    browser.force_login(user)
    return browser


def test_page_makes_only_rows_that_its_user_may_add(tmp_path: Path) -> None:
    browser, url = browser_of("add_persona", "view_every_chat"), reverse("admin:import")
    shown = browser.post(url, {"file": upload(write_astrbot(tmp_path / "data"))})
    browser.post(url, {"sealed": shown.context["sealed"]})
    assert Persona.objects.filter(name="霜降").exists()
    assert not ModelEndpoint.objects.filter(name="ds").exists()
    assert not McpServer.objects.filter(name="web").exists()


def test_page_is_not_for_those_who_may_add_nothing() -> None:
    """Nor for those who have chats of their own: a file may hold notes of any chat."""
    assert browser_of("add_note").get(reverse("admin:import")).status_code == 403
    User.objects.all().delete()
    assert (
        browser_of("view_persona", "view_every_chat").get(reverse("admin:import")).status_code
        == 403
    )


def test_card_in_a_zip_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "fox.charx", "w") as archive:
        archive.writestr("card.json", json.dumps(CARD))
        archive.writestr("assets/icon/images/0.webp", picture("WEBP"))
        archive.writestr("assets/icon/images/main.webp", picture("WEBP", BLUE))
        archive.writestr("assets/background/images/main.png", b"no picture")
    assert "Picture: " in run(tmp_path / "fox.charx", "--yes")
    assert colour_of(persona_file.load_picture(Persona.objects.get(name="霜降"))) == "blue"
