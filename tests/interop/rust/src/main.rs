//! kube: the definition is derived from a type, as its users do.

use std::{collections::BTreeSet, env, fmt::Debug, fs};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, future::try_join_all, pin_mut};
use k8s_openapi::{
    api::{apps::v1::Deployment, coordination::v1::Lease},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Error, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams, entry::CommitError},
    runtime::{
        WatchStreamExt, reflector,
        reflector::ObjectRef,
        wait::{await_condition, conditions::is_crd_established},
        watcher,
        watcher::Event,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

const WRITERS: i64 = 4;
const INCREMENTS: i64 = 5;
const OBJECTS: usize = 25;
const PAGE: u32 = 10;

#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[kube(group = "interop.example.com", version = "v1", kind = "Gadget", namespaced, status = "Seen")]
struct GadgetSpec {
    #[serde(default)]
    #[schemars(range(min = 0))]
    count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
struct Seen {
    seen: i64,
}

fn gadget(name: &str, count: i64) -> Gadget {
    Gadget::new(name, GadgetSpec { count, note: None })
}

/// An error whose answer has this code, and tells this.
fn refused<T: Debug>(outcome: Result<T, Error>, code: u16, told: &str) -> Result<()> {
    match outcome {
        Err(Error::Api(status)) if status.code == code && status.message.contains(told) => Ok(()),
        other => anyhow::bail!("expected {code} that tells {told}, not {other:?}"),
    }
}

/// Have the server forget all revisions but the current one.
async fn compact() -> Result<()> {
    println!("compact");
    let mut line = String::new();
    BufReader::new(stdin()).read_line(&mut line).await?;
    ensure!(line == "compacted\n");
    Ok(())
}

async fn define(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let made = definitions.create(&PostParams::default(), &Gadget::crd()).await?;
    await_condition(definitions, &made.name_any(), is_crd_established()).await?;
    Ok(())
}

/// Look at an entry, change it, commit, and on a Conflict again.
async fn increment(gadgets: &Api<Gadget>, name: &str) -> Result<()> {
    loop {
        let found = gadgets.entry(name).await?;
        let mut entry = found.and_modify(|gadget| gadget.spec.count += 1).or_insert(|| gadget(name, 1));
        match entry.commit(&PostParams::default()).await {
            Err(CommitError::Save(Error::Api(status))) if status.is_conflict() || status.is_already_exists() => continue,
            outcome => return Ok(outcome?),
        }
    }
}

async fn conflicts(gadgets: &Api<Gadget>) -> Result<()> {
    let parameters = PostParams::default();
    let writers = (0..WRITERS).map(|_| {
        let gadgets = gadgets.clone();
        async move {
            for _ in 0..INCREMENTS {
                increment(&gadgets, "counter").await?;
            }
            anyhow::Ok(())
        }
    });
    try_join_all(writers.map(tokio::spawn)).await?.into_iter().collect::<Result<()>>()?;
    let mut stale = gadgets.get("counter").await?;
    ensure!(stale.spec.count == WRITERS * INCREMENTS);
    let mut current = stale.clone();
    current.spec.note = Some("current".into());
    gadgets.replace("counter", &parameters, &current).await?;
    stale.spec.count = 0;
    let outcome = gadgets.replace("counter", &parameters, &stale).await;
    refused(outcome, 409, "the object has been modified")?;
    refused(gadgets.create(&parameters, &gadget("bad", -1)).await, 422, "spec.count")?;
    refused(gadgets.create(&parameters, &gadget("counter", 0)).await, 409, "already exists")
}


async fn status(gadgets: &Api<Gadget>) -> Result<()> {
    let mut current = gadgets.get_status("counter").await?;
    current.status = Some(Seen { seen: 1 });
    current.spec.count = 99;
    let changed = gadgets.replace_status("counter", &PostParams::default(), &current).await?;
    ensure!(changed.status == Some(Seen { seen: 1 }) && changed.spec.count == WRITERS * INCREMENTS);
    let merge = Patch::Merge(json!({"status": {"seen": 2}}));
    let changed = gadgets.patch_status("counter", &PatchParams::default(), &merge).await?;
    ensure!(changed.status == Some(Seen { seen: 2 }));
    Ok(())
}

async fn patches(client: &Client, gadgets: &Api<Gadget>) -> Result<()> {
    let parameters = PatchParams::default();
    let merge = Patch::Merge(json!({"spec": {"note": "merged"}}));
    let merged = gadgets.patch("counter", &parameters, &merge).await?;
    ensure!(merged.spec.note.as_deref() == Some("merged"));
    let operations = json!([{"op": "replace", "path": "/spec/note", "value": "replaced"}]);
    let json = Patch::Json::<()>(serde_json::from_value(operations)?);
    let patched = gadgets.patch("counter", &parameters, &json).await?;
    ensure!(patched.spec.note.as_deref() == Some("replaced"));

    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let written = fs::read_to_string(format!("{}/deployment.json", env::var("WRITTEN")?))?;
    let made = deployments.create(&PostParams::default(), &serde_json::from_str(&written)?).await?;
    ensure!(image_and_port(&made)? == ("example.com/c:1".into(), 80, Some("TCP".into())));
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "example.com/c:2"}]}}}});
    let changed = deployments.patch(&made.name_any(), &parameters, &Patch::Strategic(image)).await?;
    ensure!(image_and_port(&changed)? == ("example.com/c:2".into(), 80, Some("TCP".into())));
    Ok(())
}

fn image_and_port(deployment: &Deployment) -> Result<(String, i32, Option<String>)> {
    let template = &deployment.spec.template;
    let container = &template.spec.as_ref().context("no spec of Pods")?.containers[0];
    let port = &container.ports.as_ref().context("no ports")?[0];
    Ok((container.image.clone().context("no image")?, port.container_port, port.protocol.clone()))
}

async fn apply(gadgets: &Api<Gadget>) -> Result<()> {
    let (one, two) = (PatchParams::apply("one"), PatchParams::apply("two"));
    let [first, second] = [gadget("applied", 1), gadget("applied", 2)];
    let made = gadgets.patch("applied", &one, &Patch::Apply(&first)).await?;
    let again = gadgets.patch("applied", &one, &Patch::Apply(&first)).await?;
    ensure!(again.managed_fields()[0].manager.as_deref() == Some("one"));
    ensure!(again.resource_version() == made.resource_version());
    refused(gadgets.patch("applied", &two, &Patch::Apply(&second)).await, 409, "conflict with \"one\": .spec.count")?;
    let forced = gadgets.patch("applied", &two.force(), &Patch::Apply(&second)).await?;
    ensure!(forced.spec.count == 2);
    Ok(())
}

async fn pages(gadgets: &Api<Gadget>) -> Result<()> {
    for number in 0..OBJECTS {
        gadgets.create(&PostParams::default(), &gadget(&format!("page-{number}"), 0)).await?;
    }
    let mut parameters = ListParams::default().limit(PAGE);
    let mut seen = Vec::new();
    loop {
        let page = gadgets.list(&parameters).await?;
        ensure!(page.items.len() <= PAGE as usize);
        seen.extend(page.items.iter().map(ResourceExt::name_any));
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => parameters = parameters.continue_token(&token),
            _ => break,
        }
    }
    ensure!(seen.iter().collect::<BTreeSet<_>>().len() == seen.len() && seen.len() >= OBJECTS);
    Ok(())
}

async fn watches(gadgets: &Api<Gadget>) -> Result<()> {
    let old = gadgets.list(&ListParams::default()).await?.metadata.resource_version.context("no version")?;
    let config = watcher::Config::default().page_size(PAGE);
    across_a_compaction(gadgets, config, &["watched", "later"], true).await?;
    let events: Vec<_> = gadgets.watch(&WatchParams::default(), &old).await?.try_collect().await?;
    match &events[..] {
        [WatchEvent::Error(status)] => ensure!(status.code == 410, "{status:?}"),
        other => anyhow::bail!("told of what is forgotten: {other:?}"),
    }
    let config = watcher::Config::default().streaming_lists();
    across_a_compaction(gadgets, config, &["streamed", "streamed-later"], false).await
}

/// A reflector sees what is made and deleted; also, if it is wanted, after the server has forgotten what happened.
async fn across_a_compaction(
    gadgets: &Api<Gadget>,
    config: watcher::Config,
    [first, later]: &[&str; 2],
    compacting: bool,
) -> Result<()> {
    let (reader, writer) = reflector::store();
    let events = watcher(gadgets.clone(), config).default_backoff().reflect(writer);
    pin_mut!(events);
    let key = |name: &str| ObjectRef::new(name).within("default");
    until(&mut events, |event| matches!(event, Event::InitDone)).await?;
    ensure!(reader.get(&key("counter")).is_some_and(|found| found.spec.count == WRITERS * INCREMENTS));
    gadgets.create(&PostParams::default(), &gadget(first, 0)).await?;
    until(&mut events, |event| matches!(event, Event::Apply(seen) if seen.name_any() == *first)).await?;
    gadgets.delete(first, &DeleteParams::default()).await?;
    until(&mut events, |event| matches!(event, Event::Delete(seen) if seen.name_any() == *first)).await?;
    if compacting {
        compact().await?;
    }
    gadgets.create(&PostParams::default(), &gadget(later, 0)).await?;
    until(&mut events, |event| {
        matches!(event, Event::Apply(seen) | Event::InitApply(seen) if seen.name_any() == *later)
    })
    .await?;
    Ok(())
}

/// Take events until there is this one; errors of the stream are what its backoff is for.
async fn until<S>(events: &mut S, wanted: impl Fn(&Event<Gadget>) -> bool) -> Result<()>
where
    S: futures::Stream<Item = Result<Event<Gadget>, watcher::Error>> + Unpin,
{
    while let Some(event) = events.next().await {
        if event.is_ok_and(|event| wanted(&event)) {
            return Ok(());
        }
    }
    anyhow::bail!("the stream has ended")
}

async fn lease(client: &Client) -> Result<()> {
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(k8s_openapi::jiff::Timestamp::now());
    let held = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kube"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": now},
    });
    let made = leases.create(&PostParams::default(), &serde_json::from_value(held)?).await?;
    let mut taken = made.clone();
    taken.spec.get_or_insert_default().holder_identity = Some("b".into());
    let taken = leases.replace("kube", &PostParams::default(), &taken).await?;
    ensure!(taken.spec.and_then(|spec| spec.holder_identity).as_deref() == Some("b"));
    refused(leases.replace("kube", &PostParams::default(), &made).await, 409, "the object has been modified")
}

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::try_default().await?;
    let gadgets: Api<Gadget> = Api::default_namespaced(client.clone());
    define(&client).await?;
    println!("define");
    conflicts(&gadgets).await?;
    println!("conflicts");
    status(&gadgets).await?;
    println!("status");
    patches(&client, &gadgets).await?;
    println!("patches");
    apply(&gadgets).await?;
    println!("apply");
    pages(&gadgets).await?;
    println!("pages");
    watches(&gadgets).await?;
    println!("watches");
    lease(&client).await?;
    println!("lease");
    Ok(())
}
