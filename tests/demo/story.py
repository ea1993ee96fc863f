"""A day with a bot on a real server: two groups, a private chat, a tool call that an owner
approves, a picture, a failure, and an account that went away."""

import base64
import json
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from PIL import Image, ImageDraw, ImageOps

from tests import prepared
from tests.browser.dialled import Dialled, dial
from tests.demo.rows import MONTH, SETTINGS
from tests.demo.words import Words
from tests.e2e.cockpit import Cockpit
from tests.environment import PATIENCE
from tests.fake_onebot import Frame, text
from tests.live_server import LiveServer
from tests.pictures import saved
from tests.scripted_model import Answer, Request, ScriptedModel, call, fails, says
from tests.security.people import run

ACCOUNT, AWAY = 3287654321, 3299887766
GROUPS = (724083115, 811223344)
PEOPLE = (1450001001, 1450001002, 1450001003)
OWNER = PEOPLE[0]
TOKEN = "an-invented-token"
#: What a model takes to answer, in seconds: bars of a timeline are seen.
THOUGHTS = (0.9, 0.5, 1.3, 0.7)
DELIVERED = "SELECT id FROM agent_message WHERE state = 'delivered' AND text = ?"


@dataclass
class Story:
    server: LiveServer
    model: ScriptedModel
    words: Words
    bot: Dialled
    script: deque[Answer] = field(default_factory=deque)

    def think(self, _request: Request) -> Answer:
        """The next answer, after a while. Blocks: nobody else asks the model."""
        time.sleep(THOUGHTS[len(self.script) % len(THOUGHTS)])
        return self.script.popleft()

    def page(self, query: str, address: str) -> str:
        """The address of a page, with what ``query`` finds in place of ``{}``."""
        (row,) = self.server.rows(query)
        return address.format(*row.values())


@contextmanager
def told(words: Words) -> Iterator[Story]:
    """A server on which it all has happened, and whose client is still connected."""
    env = {
        "LANGUAGE_CODE": words.language,
        "ONEBOT_ACCESS_TOKEN": TOKEN,
        "TIME_ZONE": "Asia/Shanghai",
    }
    server = LiveServer(env)
    prepared.fill(server.data_dir, server._environment())
    with ScriptedModel() as model:
        run(server, SETTINGS, {**asdict(words), "model": model.url})
        with server, dial(server, ACCOUNT, TOKEN, words.persona) as bot:
            story = Story(server, model, words, bot)
            model.answer_with(story.think)
            set_up(story, bot)
            play(story, bot)
            run(server, MONTH, None)
            yield story


def set_up(story: Story, bot: Dialled) -> None:
    """Two accounts with an owner, one of them gone; the tools, as an operator has changed them."""
    question, answer = story.words.private
    ask(story, bot, None, PEOPLE[1], question, answer)
    with dial(story.server, AWAY, TOKEN, f"{story.words.persona} 2") as away:
        question, answer = story.words.away
        ask(story, away, None, PEOPLE[2], question, answer)
    cockpit = Cockpit(story.server)
    for account in (ACCOUNT, AWAY):
        cockpit.own(account, str(OWNER))
    cockpit.configure("book_table", requires_approval="always", mock_enabled=1, mock_value="OK")
    for value in story.words.weather_mocks:
        cockpit.configure("get_weather", mock_value=value)
    cockpit.close()


def play(story: Story, bot: Dialled) -> None:
    words, (group, other) = story.words, GROUPS
    story.model.answer_with(lambda _request: fails(402, message="Insufficient Balance"))
    say(story, bot, other, PEOPLE[1], words.unpaid)
    wait(story, "SELECT id FROM agent_message WHERE state = 'failed'")
    story.model.answer_with(story.think)
    for number, said in enumerate(words.chatter):
        say(story, bot, group, PEOPLE[number], said, mention=False)
    question, city, answer = words.weather
    ask(story, bot, group, PEOPLE[0], question, answer, call("get_weather", city=city))
    question, seen, answer = words.picture
    ask(story, bot, group, PEOPLE[1], [lake(), text(question)], answer, says(seen))
    book(story, bot, group)


def book(story: Story, bot: Dialled, group: int) -> None:
    """A table is booked once the owner has approved it."""
    wish, place, meanwhile, done = story.words.table
    wanted = call("book_table", place=place, people=6, time="12:00")
    ask(story, bot, group, PEOPLE[2], wish, meanwhile, wanted)
    (asked,) = story.server.rows("SELECT code FROM agent_approval")
    approval = f"{story.words.approve} {asked['code']}"
    story.script.append(sized(says(done)))
    say(story, bot, None, OWNER, approval)
    wait(story, DELIVERED, done)


def ask(
    story: Story,
    bot: Dialled,
    group: int | None,
    person: int,
    message: Any,
    answer: str,
    *before: Answer,
) -> None:
    """Say ``message`` and wait until ``answer`` is sent, which comes after ``before``."""
    story.script.extend(map(sized, [*before, says(answer)]))
    say(story, bot, group, person, message)
    wait(story, DELIVERED, answer)


def say(
    story: Story, bot: Dialled, group: int | None, person: int, message: Any, **options: Any
) -> Frame:
    name = story.words.people[PEOPLE.index(person)]
    sender = {"user_id": person, "nickname": name, "role": "owner" if person == OWNER else "member"}
    if group is None:
        return bot.say_private(person, message, sender=sender)
    title = story.words.groups[GROUPS.index(group)]
    return bot.say_group(group, person, message, sender=sender, group_name=title, **options)


def sized(answer: Answer) -> Answer:
    """``answer`` with as many tokens as a real one costs."""
    body = json.loads(answer.body)
    written = 20 + len(json.dumps(body["choices"][0], ensure_ascii=False)) // 3
    body["usage"] = {"prompt_tokens": 2140 + 9 * written, "completion_tokens": written}
    body["usage"]["total_tokens"] = sum(body["usage"].values())
    return replace(answer, body=json.dumps(body).encode())


def lake() -> Frame:
    """A picture of a sunset over water."""
    image = Image.linear_gradient("L").resize((480, 320))
    sky = ImageOps.colorize(image, (58, 90, 150), (250, 190, 110), mid=(225, 130, 110))
    draw = ImageDraw.Draw(sky)
    draw.ellipse((205, 140, 275, 210), fill=(255, 226, 150))
    draw.rectangle((0, 190, 480, 320), fill=(52, 84, 120))
    for row in range(10):
        half = 60 - 4 * row
        draw.rectangle(
            (240 - half, 200 + 11 * row, 240 + half, 203 + 11 * row), fill=(214, 160, 130)
        )
    content = base64.b64encode(saved(sky, "JPEG")).decode()
    return {"type": "image", "data": {"file": f"base64://{content}"}}


def wait(story: Story, query: str, *values: str) -> None:
    """Wait until ``query`` finds a row."""
    end = time.monotonic() + PATIENCE
    while not story.server.rows(query, *values):
        assert time.monotonic() < end, f"no row: {query} {values}\n{story.server.log[-2000:]}"
        time.sleep(0.05)
