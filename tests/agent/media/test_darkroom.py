"""The process that decodes: started when there is work, and none the worse for what it is given."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from agent.domain.types import MediaUnavailable
from agent.media import image_reader as module
from agent.media.image_reader import ImageJob, ImageWorker
from tests.environment import PATIENCE
from tests.pictures import colour_of, picture, plain, saved


@pytest.fixture
async def image_worker():
    image_worker = ImageWorker()
    yield image_worker
    await image_worker.close()


def job(folder: Path, content: bytes, name: str = "a", pixels: int = 10**6) -> ImageJob:
    source = folder / name
    source.write_bytes(content)
    return ImageJob(source, folder / f"{name}.out", side=32, size=2**16, pixels=pixels)


async def test_jobs_side_by_side_all_get_their_own_picture(image_worker, tmp_path):
    colours = {"red": (200, 0, 0), "green": (0, 200, 0), "blue": (0, 0, 200)}
    jobs = {name: job(tmp_path, picture("PNG", colour), name) for name, colour in colours.items()}
    await asyncio.gather(*map(image_worker.process, jobs.values()))
    assert [colour_of(one.target.read_bytes()) for one in jobs.values()] == list(colours)


@pytest.mark.parametrize(
    ("content", "pixels", "reason"),
    [
        (b"no picture", 10**6, module.BROKEN),
        (saved(plain(size=(200, 200))), 30_000, module.TOO_LARGE),
    ],
)
async def test_what_cannot_be_decoded_is_unavailable_and_the_next_job_is_done(
    image_worker, tmp_path, content, pixels, reason
):
    with pytest.raises(MediaUnavailable, match=reason):
        await image_worker.process(job(tmp_path, content, pixels=pixels))
    good = job(tmp_path, picture(), "good")
    await image_worker.process(good)
    assert good.target.exists()


async def test_a_process_that_dies_costs_one_job(image_worker, tmp_path):
    await image_worker.process(job(tmp_path, picture()))
    image_worker._child.result().send_signal(signal.SIGKILL)
    with pytest.raises(MediaUnavailable, match=module.BROKEN):
        await image_worker.process(job(tmp_path, picture(), "lost"))
    await image_worker.process(job(tmp_path, picture(), "next"))


async def test_a_job_that_takes_too_long_is_given_up(image_worker, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "JOB_SECONDS", 0.0)
    with pytest.raises(MediaUnavailable, match=module.TOO_SLOW):
        await image_worker.process(job(tmp_path, picture()))
    monkeypatch.undo()
    await image_worker.process(job(tmp_path, picture(), "next"))


async def test_the_answer_to_a_cancelled_job_is_not_taken_for_the_next_ones(image_worker, tmp_path):
    cancelled = asyncio.create_task(image_worker.process(job(tmp_path, b"no picture")))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    await image_worker.process(job(tmp_path, picture(), "next"))


async def test_everything_else_goes_first_and_ctrl_c_is_not_meant_for_it(image_worker, tmp_path):
    await image_worker.process(job(tmp_path, picture()))
    pid = image_worker._child.result().pid
    assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0) + 10
    assert os.getpgid(pid) == pid
    assert os.getsid(pid) == os.getsid(
        0
    )  # niceness counts within a session alone, where sched_autogroup is on


async def test_an_idle_process_is_let_go_and_comes_back(image_worker, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.0)
    await image_worker.process(job(tmp_path, picture()))
    child = image_worker._child.result()
    assert await asyncio.wait_for(child.wait(), PATIENCE) == 0
    await image_worker.process(job(tmp_path, picture(), "next"))
