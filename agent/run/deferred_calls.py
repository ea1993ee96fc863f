"""The calls of one run whose outcome comes after it: those that wait for an owner, and those that
take long."""

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from agent.domain.approvals import NO_BASIS, build_approval_question
from agent.domain.types import MessagePart
from agent.record.run_journal import RunJournal
from agent.record.waiting.approvals import ApprovalRequest
from agent.run.jobs import BackgroundCalls
from agent.run.message_sender import MessageSender
from agent.run.tool_results import build_pending_result
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.time_limits import TIME_LIMITS

#: How long a long-running tool may take to be answered like any other, in seconds.
GRACE_SECONDS = TIME_LIMITS.quick_answer
#: Owners that are mentioned when a group's question is asked.
MENTION_LIMIT = 3


class DeferredCalls:
    """Knows the run's chat and its owners; holds nothing of a single call."""

    def __init__(
        self,
        journal: RunJournal,
        jobs: BackgroundCalls,
        speaker: MessageSender,
        *,
        session_pk: int,
        owners: frozenset[str],
        can_see: bool,
        language: str = "",
    ) -> None:
        self._journal = journal
        self._jobs = jobs
        self._speaker = speaker
        self._session_pk = session_pk
        self._owners = owners
        self._can_see = can_see
        self._language = language

    async def ask_owners(
        self, invocation: ToolInvocation, refusal: ToolExecutionResult
    ) -> ToolExecutionResult:
        """Ask the owners about a call that was refused until one of them approves; returns the text
        that the model gets meanwhile."""
        name, pk = invocation.tool_name, invocation.call_pk
        arguments = refusal.metadata["arguments"]
        basis = refusal.metadata.get("basis", NO_BASIS)
        request = ApprovalRequest(pk, self._session_pk, arguments, self._owners, basis)
        asked = await self._journal.ask(request)
        if asked is None:
            return _failed(
                name,
                "本会话等待批准或刚刚请求批准的调用太多。请告诉用户先等主人处理，过几分钟再试。",
            )
        if not asked.is_new:
            return _failed(name, f"同样的调用已在等待批准（编号 {asked.code}），请勿重复调用。")
        text = build_approval_question(
            name,
            arguments,
            asked.code,
            language=self._language,
            basis=basis,
            by_managers=asked.by_managers,
        )
        parts = self._parts(text, basis.message_id, is_loud=asked.is_loud)
        await self._speaker.send(parts, text, tool_call_pk=pk, is_counted=False)
        if asked.is_private:
            self._jobs.wake(self._speaker.chat.account)
        result = build_pending_result(name, asked.told)
        return replace(result, metadata={**refusal.metadata, **result.metadata})

    async def wait_or_defer(
        self, invocation: ToolInvocation, work: Coroutine[Any, Any, ToolExecutionResult]
    ) -> ToolExecutionResult:
        """The result of ``work`` if it comes soon; otherwise that it continues, and its result is
        announced in the chat.

        When cancelled meanwhile, the work is cancelled with it.
        """
        name = invocation.tool_name
        if self._jobs.is_full:
            work.close()
            return _failed(name, "后台任务已满，请稍后再试。")
        begun = time.monotonic()
        task = asyncio.get_running_loop().create_task(work, name=name)
        try:
            await asyncio.wait([task], timeout=GRACE_SECONDS)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.done():
            return task.result()
        self._jobs.watch_call(
            task,
            invocation.call_pk,
            self._speaker.chat.account,
            begun=begun,
            can_see=self._can_see,
        )
        told = (
            f"工具 {name} 正在执行，需要较长时间。完成后会自动在本会话告知结果。请告诉用户稍候，"
            "不要重复调用。"
        )
        return build_pending_result(name, told, worker=self._jobs.worker)

    def with_progress_reports(self, context: ToolExecutionContext, pk: int) -> ToolExecutionContext:
        """``context`` for a call that may report its progress."""
        report = self._jobs.progress_reporter(pk, self._speaker.chat.account)
        return replace(context, on_progress=report)

    def _parts(self, text: str, quoted_id: str, *, is_loud: bool) -> list[MessagePart]:
        quote = [MessagePart("quote", message_id=quoted_id)] if quoted_id else []
        if self._speaker.chat.kind != "group" or not self._owners or not is_loud:
            return [*quote, MessagePart("plain", text=text)]
        mentions = [
            MessagePart("mention_user", mention_user_id=owner)
            for owner in sorted(self._owners)[:MENTION_LIMIT]
        ]
        return [*quote, *mentions, MessagePart("plain", text=f" {text}")]


def _failed(name: str, text: str) -> ToolExecutionResult:
    return ToolExecutionResult(name, success=False, error_message=f"工具执行失败: {text}")
