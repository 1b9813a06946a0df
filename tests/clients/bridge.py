import json, os, sys, urllib.request

def call(method, **params):
    url = f"http://127.0.0.1:{os.environ['TOOL_CLI_PORT']}/"
    headers = {"Authorization": f"Bearer {os.environ['TOOL_CLI_TOKEN']}", "Content-Type": "application/json"}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    answer = json.load(urllib.request.urlopen(urllib.request.Request(url, body, headers)))
    return answer["result"] if "result" in answer else sys.exit(answer["error"]["message"])

print(call("callTool", server="demo", tool="get_weather", arguments={"city": sys.argv[1]})["structuredContent"])
