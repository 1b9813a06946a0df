"""LangChain's MCP adapters as a client of the bridge: langchain_adapters.py URL, the token in TOOL_CLI_TOKEN.

Prints what it saw as one line of JSON.
"""

import asyncio
import json
import os
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


def text_of(result) -> str:
    return result if isinstance(result, str) else "".join(part.get("text", "") for part in result)


async def main(url: str) -> None:
    headers = {"Authorization": f"Bearer {os.environ['TOOL_CLI_TOKEN']}"}
    client = MultiServerMCPClient({"footbridge": {"transport": "streamable_http", "url": url, "headers": headers}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    weather = await tools["demo__get_weather"].ainvoke({"city": "Bern"})
    # There is no such unit.
    refused = await tools["demo__get_weather"].ainvoke({"city": "Bern", "units": "furlongs"})
    await tools["demo__add_note"].ainvoke({"text": "buy milk"})
    notes = await client.get_resources("footbridge", uris=["note:///1"])
    seen = {"tools": list(tools), "weather": text_of(weather), "refused": text_of(refused), "notes": notes[0].as_string()}
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1]))
