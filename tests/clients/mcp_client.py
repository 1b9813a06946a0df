"""The Python SDK of MCP as a client of the bridge: mcp_client.py URL MODE (legacy or auto), the token in TOOL_CLI_TOKEN.

Prints what it saw as one line of JSON.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main(url: str, mode: str) -> None:
    headers = {"Authorization": f"Bearer {os.environ['TOOL_CLI_TOKEN']}"}
    seen, steps = {}, []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append(int(done))

    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            seen["revision"] = client.protocol_version
            seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
            weather = await client.call_tool("demo__get_weather", {"city": "Bern"})
            seen["weather"] = weather.structured_content
            refused = await client.call_tool("demo__get_weather", {"town": "Bern"})
            seen["refused"] = [refused.is_error, refused.content[0].text]
            slow = {"n": 3, "stepMs": 20}
            await client.call_tool("demo__count_slowly", slow, progress_callback=progress)
            await client.call_tool("demo__add_note", {"text": "buy milk"})
            templates = (await client.list_resource_templates()).resource_templates
            seen["templates"] = [template.uri_template for template in templates]
            seen["read"] = (await client.read_resource("note:///1")).contents[0].text
            seen["prompts"] = len((await client.list_prompts()).prompts)
    seen["steps"] = steps
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1], sys.argv[2]))
