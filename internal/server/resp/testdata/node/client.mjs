// Talks to weir at the port given with the redis client, in RESP2 and RESP3, and prints what it is told.
import { createClient } from 'redis';

const port = Number(process.argv[2]);
for (const RESP of [2, 3]) {
  const client = createClient({ socket: { host: '127.0.0.1', port }, RESP, name: `node${RESP}` });
  client.on('error', (err) => { console.error(err); process.exit(1); });
  await client.connect();
  const say = (what, value) => console.log(`${RESP} ${what} ${JSON.stringify(value)}`);
  const take = (key) => client.sendCommand(['WEIR.TAKE', key, '2/8760h']);

  say('ping', await client.ping());
  say('echo', await client.echo('hello'));
  say('name', await client.clientGetName());
  const both = await Promise.all([take(`node${RESP}`), take(`node${RESP}`), take(`node${RESP}`)]); // one pipeline
  say('allowed', both.map((d) => d[0]));
  say('limit', both[0][1]);
  say('throttle', (await client.sendCommand(['CL.THROTTLE', `cl${RESP}`, '15', '30', '60'])).slice(0, 4));
  say('bucket', await client.sendCommand(['RL.REDUCE', `rl${RESP}`, '5', '86400']));
  say('reset', await client.sendCommand(['WEIR.RESET', `node${RESP}`, '2/8760h']));
  say('config', await client.configGet('save'));
  say('commands', (await client.commandList()).includes('weir.take'));
  say('info', (await client.info('clients')).includes('connected_clients:1'));
  try {
    await client.get('key');
  } catch (err) {
    say('error', err.message);
  }
  await client.close();
}
