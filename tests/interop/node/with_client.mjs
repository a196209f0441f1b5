// The official client for JavaScript.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import * as k8s from '@kubernetes/client-node';

const place = { group: 'interop.example.com', version: 'v1', namespace: 'default', plural: 'gadgets' };
const path = `/apis/${place.group}/${place.version}/namespaces/${place.namespace}/${place.plural}`;
const [writers, increments, objects, pageSize] = [4, 5, 25, 10];

const config = new k8s.KubeConfig();
config.loadFromDefault();
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const any = k8s.KubernetesObjectApi.makeApiClient(config);
const lines = createInterface({ input: process.stdin });

const written = (name) => JSON.parse(readFileSync(`${process.env.WRITTEN}/${name}.json`, 'utf8'));
const as = (type) => k8s.setHeaderOptions('Content-Type', type);
const get = (name) => custom.getNamespacedCustomObject({ ...place, name });
const create = (name, count = 0) => custom.createNamespacedCustomObject({ ...place, body: gadget(name, count) });

function gadget(name, count) {
  const metadata = { name, namespace: place.namespace };
  return { apiVersion: `${place.group}/${place.version}`, kind: 'Gadget', metadata, spec: { count } };
}

/** Assert that a promise fails with an answer of this code that tells this. */
async function refused(promise, code, told) {
  const error = await promise.then(() => assert.fail(`expected ${code}`), (error) => error);
  assert.ok(error instanceof k8s.ApiException, error);
  assert.equal(error.code, code);
  assert.match(JSON.stringify(error.body), told);
}

/** Have the server forget all revisions but the current one. */
async function compact() {
  console.log('compact');
  assert.deepEqual(await once(lines, 'line'), ['compacted']);
}

async function define() {
  const api = config.makeApiClient(k8s.ApiextensionsV1Api);
  await api.createCustomResourceDefinition({ body: written('definition') });
  const isEstablished = ({ status }) => status?.conditions?.some((c) => c.type === 'Established' && c.status === 'True');
  await new Promise((resolve, reject) => {
    const list = () => api.listCustomResourceDefinition();
    const informer = k8s.makeInformer(config, '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', list);
    informer.on('change', (definition) => isEstablished(definition) && resolve(informer.stop()));
    informer.on('error', reject);
    informer.start();
  });
}

/** Read, change, write, and on a Conflict again. */
async function increment(name) {
  for (;;) {
    const current = await get(name);
    current.spec.count += 1;
    try {
      return await custom.replaceNamespacedCustomObject({ ...place, name, body: current });
    } catch (error) {
      if (!(error instanceof k8s.ApiException && error.code === 409)) throw error;
    }
  }
}

async function conflicts() {
  const name = 'counter';
  const first = await create(name);
  const writer = async () => {
    for (let done = 0; done < increments; done++) await increment(name);
  };
  await Promise.all(Array.from({ length: writers }, writer));
  assert.equal((await get(name)).spec.count, writers * increments);
  const stale = custom.replaceNamespacedCustomObject({ ...place, name, body: first });
  await refused(stale, 409, /the object has been modified/);
  await refused(create('bad', -1), 422, /spec\.count/);
  await refused(create(name), 409, /AlreadyExists/);
}

async function status() {
  const body = { ...(await get('counter')), spec: { count: 99 }, status: { seen: 1 } };
  const changed = await custom.replaceNamespacedCustomObjectStatus({ ...place, name: 'counter', body });
  assert.deepEqual(changed.status, { seen: 1 });
  assert.equal(changed.spec.count, writers * increments);
}

async function patches() {
  const target = { ...place, name: 'counter' };
  const merge = { ...target, body: { spec: { note: 'merged' } } };
  const merged = await custom.patchNamespacedCustomObject(merge, as(k8s.PatchStrategy.MergePatch));
  assert.equal(merged.spec.note, 'merged');
  const operations = { ...target, body: [{ op: 'replace', path: '/spec/note', value: 'replaced' }] };
  const patched = await custom.patchNamespacedCustomObject(operations, as(k8s.PatchStrategy.JsonPatch));
  assert.equal(patched.spec.note, 'replaced');

  const apps = config.makeApiClient(k8s.AppsV1Api);
  const made = await apps.createNamespacedDeployment({ namespace: 'default', body: written('deployment') });
  assert.equal(made.spec.template.spec.containers[0].ports[0].protocol, 'TCP');
  assert.ok(made.metadata.creationTimestamp instanceof Date);
  const body = { spec: { template: { spec: { containers: [{ name: 'c', image: 'example.com/c:2' }] } } } };
  const changed = await apps.patchNamespacedDeployment(
    { namespace: 'default', name: made.metadata.name, body },
    as(k8s.PatchStrategy.StrategicMergePatch),
  );
  const [container] = changed.spec.template.spec.containers;
  assert.deepEqual([container.image, container.ports[0].containerPort], ['example.com/c:2', 80]);
}

async function apply() {
  const as = (manager, count, force) =>
    any.patch(gadget('applied', count), undefined, undefined, manager, force, k8s.PatchStrategy.ServerSideApply);
  const made = await as('one', 1);
  const again = await as('one', 1);
  assert.equal(again.metadata.managedFields[0].manager, 'one');
  assert.equal(again.metadata.resourceVersion, made.metadata.resourceVersion);
  await refused(as('two', 2), 409, /conflict with .*one.*spec\.count/);
  assert.equal((await as('two', 2, true)).spec.count, 2);
}

async function pages() {
  for (let number = 0; number < objects; number++) await create(`page-${number}`);
  const seen = [];
  let _continue;
  do {
    const page = await custom.listNamespacedCustomObject({ ...place, limit: pageSize, _continue });
    assert.ok(page.items.length <= pageSize);
    seen.push(...page.items.map((item) => item.metadata.name));
    _continue = page.metadata.continue;
  } while (_continue);
  assert.equal(new Set(seen).size, seen.length);
  assert.ok(seen.length >= objects);
}

/** An informer that starts again, as the client's examples do, when its watch has failed. */
function informed() {
  const informer = k8s.makeInformer(config, path, () => custom.listNamespacedCustomObject(place));
  informer.on('error', () => setTimeout(() => informer.start(), 100));
  const told = (event, name) =>
    new Promise((resolve) => informer.on(event, ({ metadata }) => metadata.name === name && resolve()));
  return { informer, told };
}

async function watches() {
  const { informer, told } = informed();
  const added = told('add', 'watched');
  await informer.start();
  const { resourceVersion } = (await custom.listNamespacedCustomObject(place)).metadata;
  await create('watched');
  await added;
  const [gone, later] = [told('delete', 'watched'), told('add', 'later')];
  await custom.deleteNamespacedCustomObject({ ...place, name: 'watched' });
  await gone;
  await compact();
  await create('later');
  await later;
  await informer.stop();
  assert.equal(informer.get('counter', place.namespace).spec.count, writers * increments);
  assert.equal(informer.get('watched', place.namespace), undefined);

  const codes = [];
  await new Promise((resolve) => {
    const event = (type, object) => codes.push([type, object.code]);
    new k8s.Watch(config).watch(path, { resourceVersion }, event, resolve);
  });
  assert.deepEqual(codes, [['ERROR', 410]]);
  const renewed = informed();
  renewed.informer.resourceVersion = resourceVersion;
  const listed = renewed.told('add', 'later');
  await renewed.informer.start();
  await listed;
  await renewed.informer.stop();
}

async function lease() {
  const api = config.makeApiClient(k8s.CoordinationV1Api);
  const [namespace, name] = ['default', 'node'];
  const spec = { holderIdentity: 'a', leaseDurationSeconds: 15, renewTime: new k8s.V1MicroTime() };
  const made = await api.createNamespacedLease({ namespace, body: { metadata: { name }, spec } });
  const held = await api.readNamespacedLease({ namespace, name });
  held.spec.holderIdentity = 'b';
  held.spec.renewTime = new k8s.V1MicroTime();
  const taken = await api.replaceNamespacedLease({ namespace, name, body: held });
  assert.equal(taken.spec.holderIdentity, 'b');
  await refused(api.replaceNamespacedLease({ namespace, name, body: made }), 409, /Conflict/);
}

for (const step of [define, conflicts, status, patches, apply, pages, watches, lease]) {
  await step();
  console.log(step.name);
}
process.exit(0);
