"""Talks to weir at the port given with redis-py, and prints what it is told."""

import sys

import redis

client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]), client_name="python", decode_responses=True)
print("ping", client.ping())
print("echo", client.echo("hello"))
print("name", client.client_getname())
print("take", [client.execute_command("WEIR.TAKE", "py", "2/8760h")[0] for _ in range(3)])
print("reset", client.execute_command("WEIR.RESET", "py", "2/8760h"))

pipeline = client.pipeline(transaction=False)
for _ in range(100):
    pipeline.execute_command("WEIR.TAKE", "many", "60/8760h")
print("pipeline", sum(d[0] for d in pipeline.execute()))

transaction = client.pipeline()
for _ in range(3):
    transaction.execute_command("WEIR.TAKE", "together", "2/8760h")
print("transaction", [d[0] for d in transaction.execute()])

print("throttle", client.execute_command("CL.THROTTLE", "cl", 15, 30, 60)[:4])
print("bucket", client.execute_command("RL.REDUCE", "rl", 5, 86400))
print("config", client.config_get("save"))
print("command", client.command_count() > 10, "weir.take" in client.command())
print("clients", len(client.client_list()), client.client_list()[0]["name"], client.info("clients")["connected_clients"])
info = client.client_info()
print("client", info["name"], info["idle"], info["multi"], info["resp"])
try:
    client.get("key")
except redis.ResponseError as err:
    print("error", err)
client.close()
