"""Checks requests against the policies of the weir at the port given with redis-py, and prints what it is told."""

import sys

import redis

client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]), decode_responses=True)


def check(*words):
    return client.execute_command("WEIR.CHECK", *words)


login = ("METHOD", "POST", "PATH", "/login", "IP", "2001:db8::1")
replies = [check(*login) for _ in range(3)]
print("login", [r[0] for r in replies], replies[2][6])
print("limits", replies[0][8][0][:3])

pipeline = client.pipeline(transaction=False)
for _ in range(8):
    pipeline.execute_command("WEIR.CHECK", "HOST", "h", "QUERY", "a=1")
print("pipeline", sum(r[0] for r in pipeline.execute()))

work = ("PATH", "/work", "HEADER", "X-Key", "py")
print("released", client.execute_command("WEIR.CHECK.RELEASE", check(*work)[7]))
token = check(*work)[7]
print("busy", [int(token != ""), check(*work)[0]], check(*work)[6] == ["work"])
renewed = client.execute_command("WEIR.CHECK.RENEW", token)
print("renewed", renewed not in ("", token))
client.execute_command("WEIR.CHECK.RELEASE", renewed)
try:
    client.execute_command("WEIR.CHECK.RELEASE", renewed)
except redis.ResponseError as err:
    print("settled", err)
client.close()
