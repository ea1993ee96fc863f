"""Notes found by what they mean."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from hypothesis import given, strategies as st

from agent.domain.endpoint import Endpoint
from agent.domain.errors import LLMError
from agent.llm.client.client import OpenAIClient
from agent.llm.endpoints.embeddings import (
    Embedder,
    cosine_similarity,
    find_nearest,
    pack_vector,
    sign_bits,
)
from agent.memory.recall import NoteService
from agent.memory.vector_store import (
    TextVector,
    drop_incomparable_vectors,
    embed_note_batch,
    save_note_vectors,
)
from agent.models import Note
from agent.record.record import Record
from tests.agent.notes import ANN_IN_GROUP, OTHER_GROUP, noted
from tests.scripted_model import Answer, ScriptedModel, fails, returns

SWEET, SALTY = [0.9, 0.1, -0.2, 0.4], [-0.8, 0.5, 0.3, -0.1]


@pytest.fixture
async def embedder(model: ScriptedModel) -> AsyncIterator[Embedder]:
    embedder = Embedder(
        OpenAIClient(Endpoint(model.url, ("sk-test",), "embedding", timeout_seconds=10))
    )
    yield embedder
    await embedder.close()


def embeds(vector: list[float], *more: list[float]) -> Answer:
    return returns(
        {"data": [{"index": place, "embedding": one} for place, one in enumerate([vector, *more])]}
    )


# --- Vectors ----------------------------------------------------------------------


def test_the_likeness_of_vectors_is_that_of_their_directions():
    assert cosine_similarity(pack_vector([1, 2, 3]), pack_vector([2, 4, 6])) == pytest.approx(1)
    assert cosine_similarity(pack_vector([1, 0]), pack_vector([0, 5])) == pytest.approx(0)
    assert cosine_similarity(pack_vector([1, 0]), pack_vector([1, 0, 0])) == 0
    assert pack_vector([0.0, 0.0]) == b""


@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=20).filter(
        lambda numbers: any(abs(n) > 1e-6 for n in numbers)
    )
)
def test_a_vector_is_nearest_to_itself_and_farthest_from_its_opposite(numbers: list[float]):
    own, opposite = pack_vector(numbers), pack_vector([-number for number in numbers])
    assert cosine_similarity(own, own) == pytest.approx(1, abs=1e-3)
    assert find_nearest(own, [(1, sign_bits(opposite)), (2, sign_bits(own)), (3, b"")], 1) in (
        [2],
        [1] if sign_bits(own) == sign_bits(opposite) else [2],
    )


# --- The endpoint -----------------------------------------------------------------


async def test_texts_are_sent_in_one_call_and_come_back_in_order(
    model: ScriptedModel, embedder: Embedder
):
    shuffled = {"data": [{"index": 1, "embedding": SALTY}, {"index": 0, "embedding": SWEET}]}
    model.script([returns(shuffled)], model="embedding")
    assert await embedder.embed(["糖", "盐" * 9_999]) == [pack_vector(SWEET), pack_vector(SALTY)]
    (request,) = model.requests
    assert request.path == "/v1/embeddings"
    assert (request.body["input"][0], len(request.body["input"][1])) == ("糖", 2_000)


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"data": []},
        {"data": ["x"]},
        {"data": [{"embedding": "AAAA"}]},
        {"data": [{"embedding": [0, 0]}]},
        {"data": [{"embedding": [1, None]}]},
        {"data": [{"embedding": [1.0] * 9_000}]},
        {"data": [{"embedding": [1.0]}, {"embedding": [1.0]}]},
    ],
)
async def test_an_answer_that_is_no_vector_is_an_error(
    model: ScriptedModel, embedder: Embedder, body: Any
):
    model.script([returns(body)], model="embedding")
    with pytest.raises(LLMError):
        await embedder.embed(["a"])


# --- Notes ------------------------------------------------------------------------


async def test_a_note_is_recalled_by_its_meaning_in_its_chat_alone(
    record: Record, model: ScriptedModel, embedder: Embedder
):
    await sync_to_async(noted)(ANN_IN_GROUP, "爱吃巧克力", person="9")
    await sync_to_async(noted)(ANN_IN_GROUP, "爱吃咸鱼", person="9")
    model.script([embeds(SWEET, SALTY), embeds(SWEET)], model="embedding")
    assert await embed_note_batch(record, embedder) == 2
    book = NoteService(record, lambda: embedder)
    background = await book.recall(ANN_IN_GROUP, "dessert?", budget=1_500)
    assert [
        json.loads(line)["text"] for line in background.memory.splitlines() if line[0] == "{"
    ] == ["爱吃巧克力"]
    assert (await book.recall(OTHER_GROUP, "dessert?", budget=1_500)).memory == ""


async def test_without_the_endpoint_notes_are_found_by_their_words(
    record: Record, model: ScriptedModel, embedder: Embedder
):
    await sync_to_async(noted)(ANN_IN_GROUP, "爱吃巧克力", person="9")
    model.script([embeds(SWEET), fails(400)], model="embedding")
    await embed_note_batch(record, embedder)
    background = await NoteService(record, lambda: embedder).recall(
        ANN_IN_GROUP, "巧克力", budget=1_500
    )
    assert "爱吃巧克力" in background.memory


async def test_a_text_that_the_endpoint_refuses_does_not_hold_up_the_others(
    record: Record, model: ScriptedModel, embedder: Embedder
):
    for text in ("坏的", "好的"):
        await sync_to_async(noted)(ANN_IN_GROUP, text)
    model.script([fails(400), fails(400), embeds(SWEET)], model="embedding")
    assert (await embed_note_batch(record, embedder), await embed_note_batch(record, embedder)) == (
        2,
        0,
    )
    assert [bool(note.embedding) async for note in Note.objects.order_by("pk")] == [False, True]


async def test_while_the_endpoint_is_down_no_note_is_given_up(
    record: Record, model: ScriptedModel, embedder: Embedder
):
    for text in ("一", "二"):
        await sync_to_async(noted)(ANN_IN_GROUP, text)
    model.script([fails(400)] * 3, model="embedding")
    with pytest.raises(LLMError):
        await embed_note_batch(record, embedder)
    assert await Note.objects.filter(embedding_model="").acount() == 2


async def test_nobody_is_asked_for_a_meaning_that_no_note_could_have(
    record: Record, model: ScriptedModel, embedder: Embedder
):
    await sync_to_async(noted)(ANN_IN_GROUP, "爱吃巧克力")
    await NoteService(record, lambda: embedder).recall(ANN_IN_GROUP, "巧克力", budget=1_500)
    assert model.requests == []


@pytest.mark.django_db
def test_a_note_that_says_something_else_loses_its_meaning():
    pk = noted(ANN_IN_GROUP, "爱吃巧克力").pk
    before = Note.objects.get(pk=pk)
    save_note_vectors(pk, before.fingerprint, TextVector("m", pack_vector(SWEET)))
    note = Note.objects.get(pk=pk)
    assert note.embedding_model == "m"
    note.text = "爱吃咸鱼"
    note.save()
    save_note_vectors(pk, before.fingerprint, TextVector("m", pack_vector(SWEET)))
    assert (Note.objects.get(pk=pk).embedding_model, Note.objects.get(pk=pk).embedding) == (
        "",
        None,
    )


@pytest.mark.django_db
def test_vectors_of_another_model_are_dropped():
    pk = noted(ANN_IN_GROUP, "爱吃巧克力").pk
    save_note_vectors(
        pk, Note.objects.get(pk=pk).fingerprint, TextVector("old", pack_vector(SWEET))
    )
    assert [drop_incomparable_vectors("new") for _ in range(2)] == [1, 0]
