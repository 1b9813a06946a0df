"""The one request that a tool behind the bridge needs, made by tool-cli stubs. Standard library only."""

import http.client
import json
import os
import socket
from typing import Any

ABSENT: Any = object()
"""An argument that is left out."""


class ToolError(Exception):
    """A call that was refused, or that the tool reports as failed. `data` is what the bridge says of it."""

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.data = data


class _Socket(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(_variable("TOOL_CLI_SOCKET"))


def _variable(name: str) -> str:
    """A variable; one that an agent left unfilled is not there."""
    value = os.environ.get(name, "")
    return "" if value.startswith("${" + name) else value


def _token() -> str:
    path = _variable("TOOL_CLI_TOKEN_FILE")
    if path and not _variable("TOOL_CLI_TOKEN"):
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    return _variable("TOOL_CLI_TOKEN").strip()


def call(server: str, tool: str, arguments: dict[str, Any]) -> Any:
    """Calls a tool: its structured result, the text of its content, or its content."""
    given = {name: value for name, value in arguments.items() if value is not ABSENT}
    params = {"server": server, "tool": tool, "arguments": given}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "callTool", "params": params})
    timeout = int(_variable("TOOL_CLI_TIMEOUT_MS") or "300000") / 1000
    host, port = _variable("TOOL_CLI_HOST") or "127.0.0.1", int(_variable("TOOL_CLI_PORT") or "7179")
    is_socket = bool(_variable("TOOL_CLI_SOCKET"))
    connection = (_Socket if is_socket else http.client.HTTPConnection)("localhost" if is_socket else host, port, timeout=timeout)
    try:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {_token()}", "Connection": "close"}
        connection.request("POST", "/", body.encode(), headers)
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    try:
        answer = json.loads(text)
    except ValueError:
        raise ToolError(f"the bridge answered HTTP {response.status}: {text[:1000]}") from None
    error = answer.get("error")
    if error or response.status != 200:
        message = error.get("message") if isinstance(error, dict) else error
        raise ToolError(str(message), error.get("data") if isinstance(error, dict) else None)
    result = answer["result"]
    content = result.get("content", [])
    texts = [block["text"] for block in content if block.get("type") == "text"]
    if result.get("isError"):
        raise ToolError("\n".join(texts) or "the tool reported an error without a word", result)
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    return "\n".join(texts) if len(texts) == len(content) else content
