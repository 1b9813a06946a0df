"""OpenAI's Agents SDK as a client of the bridge, with a model that is a script: openai_agents.py URL, the token in
TOOL_CLI_TOKEN.

Prints what it saw as one line of JSON.
"""

import asyncio
import json
import os
import sys

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


class Scripted(Model):
    """Calls each of these tools, one a turn, and says in the end what it was answered."""

    def __init__(self, calls):
        self.calls, self.tools, self.answers = list(calls), [], []

    async def get_response(self, *args, **kwargs) -> ModelResponse:
        items = kwargs.get("input", args[1] if len(args) > 1 else [])
        self.tools = [tool.name for tool in kwargs.get("tools", args[3] if len(args) > 3 else [])]
        self.answers = [item["output"] for item in items if isinstance(item, dict) and "output" in item]
        turn = len(self.answers)
        if turn < len(self.calls):
            name, arguments = self.calls[turn]
            output = ResponseFunctionToolCall(
                type="function_call", call_id=f"c{turn}", name=name, arguments=json.dumps(arguments)
            )
        else:
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            output = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[text]
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


def text_of(answer) -> str:
    if isinstance(answer, str):
        return answer
    return "".join(part.get("text", "") for part in (answer if isinstance(answer, list) else [answer]))


async def main(url: str) -> None:
    set_tracing_disabled(True)
    params = {"url": url, "headers": {"Authorization": f"Bearer {os.environ['TOOL_CLI_TOKEN']}"}}
    model = Scripted([
        ("demo__get_weather", {"city": "Bern"}),
        ("demo__get_weather", {"city": "Bern", "units": "furlongs"}),
        ("demo__add_note", {"text": "buy milk"}),
        ("demo__list_notes", {}),
    ])
    async with MCPServerStreamableHttp(params=params, client_session_timeout_seconds=60) as server:
        agent = Agent(name="scripted", model=model, mcp_servers=[server])
        result = await Runner.run(agent, "go")
    weather, refused, _, notes = (text_of(answer) for answer in model.answers)
    seen = {"tools": model.tools, "weather": weather, "refused": refused, "notes": notes, "said": result.final_output}
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1]))
