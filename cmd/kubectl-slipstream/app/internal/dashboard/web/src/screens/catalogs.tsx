// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Catalogs: what they offer, what is missing, and which environments are behind.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ActionButton, useActions } from "../actions";
import { useListing, useObject } from "../listing";
import { type Column, List } from "../list";
import { Aged, Ago, Command, Empty, Explained, Notice, Section, ShowAll, Skeleton, State, Tables, scope, useTitle } from "../parts";
import { Records } from "../records";
import { addressOf, go, lifeOf, route, to } from "../routes";
import { type Field, SimpleTable } from "../simpletable";
import { catalogKind, severity } from "../states";
import { cell, hello, keyOf, type Row, table } from "../store";
import { count, exact } from "../time";
import type { Catalog } from "../types";
import { catalogOf, environmentColumns, environmentRow, type EnvironmentRow } from "./environments";
import { Revisions } from "./environmenttabs";
import { pressOnEnvironment } from "./inbox";

interface CatalogRow {
  row: Row;
  state: string;
  kind: ReturnType<typeof catalogKind>;
  behind: number;
  environments: number;
  cell: (column: string) => string;
}

// environmentsBy returns the environments of each catalog.
function environmentsBy(): Map<string, EnvironmentRow[]> {
  const of = table("environments").value;
  const all = new Map<string, EnvironmentRow[]>();
  for (const row of of.rows.values()) {
    const environment = environmentRow(of, row);
    const catalog = catalogOf(environment);
    all.set(catalog, [...(all.get(catalog) ?? []), environment]);
  }
  return all;
}

// mostBehind is the number of environments that are shown, unless the user wants to see all.
const mostBehind = 8;

const isBehind = (each: EnvironmentRow): boolean => Number(each.offered) > Number(each.revision);

const columns: Column<CatalogRow>[] = [
  {
    title: "Name",
    width: "minmax(140px, 1.4fr)",
    narrow: 1,
    cell: (c) => (
      <span class="object">
        <a href={addressOf("catalogs", c.row)} tabIndex={-1}>
          <span class="kind">{c.row.namespace}/</span>
          {c.row.name}
        </a>
      </span>
    ),
  },
  { title: "State", width: "minmax(180px, 2.4fr)", narrow: 2, cell: (c) => <State kind={c.kind} text={c.state} /> },
  { title: "Source", width: "minmax(100px, 1fr)", from: 820, cell: (c) => c.cell("Source") },
  { title: "Workloads", width: "84px", from: 920, end: true, cell: (c) => c.cell("Workloads") },
  { title: "Revision", width: "76px", narrow: 1, end: true, cell: (c) => <code>r{c.cell("Revision")}</code> },
  { title: "Environments", width: "minmax(120px, 1fr)", from: 700, cell: (c) => (c.environments === 0 ? <span class="dim">none</span> : c.behind === 0 ? count(c.environments, "environment") : `${c.behind} of ${c.environments} behind`) },
  { title: "Last sync", width: "80px", from: 560, end: true, cell: (c) => <Aged text={c.cell("Last-Sync")} received={c.row.received} /> },
];

export function CatalogsScreen(): JSX.Element {
  useTitle("Catalogs");
  const catalogs = table("appcatalogs").value;
  const environments = table("environments").value;
  const rows = useMemo(() => {
    const by = environmentsBy();
    return [...catalogs.rows.values()]
      .map((row): CatalogRow => {
        const own = by.get(keyOf(row)) ?? [];
        const state = cell(catalogs, row, "State");
        return { row, state, kind: catalogKind(state, cell(catalogs, row, "Ready")), behind: own.filter(isBehind).length, environments: own.length, cell: (column) => cell(catalogs, row, column) };
      })
      .sort((a, b) => severity(a.kind) - severity(b.kind) || keyOf(a.row).localeCompare(keyOf(b.row)));
  }, [catalogs, environments]);
  return (
    <>
      <h1>Catalogs</h1>
      <Tables of={[catalogs]} what="catalogs">
        {() => (
          <List
            label="Catalogs"
            columns={columns}
            items={rows}
            keyOf={(c) => keyOf(c.row)}
            versionOf={(c) => `${c.row.version} ${c.behind} ${c.environments}`}
            open={(c) => go(addressOf("catalogs", c.row))}
            empty={
              <Empty title={`There are no catalogs${scope()}`} command="kubectl slipstream catalog --help">
                A catalog offers the workloads of a namespace, such as production, to environments. This command writes the manifest of the first one.
              </Empty>
            }
          />
        )}
      </Tables>
    </>
  );
}

export function CatalogScreen({ namespace, name }: { namespace: string; name: string }): JSX.Element {
  useTitle(name);
  const catalogs = table("appcatalogs").value;
  const row = catalogs.rows.get(keyOf({ namespace, name }));
  const version = row?.version ?? "";
  const { value, error, reload } = useObject<Catalog>("appcatalogs", namespace, name, version);
  return (
    <>
      <nav class="crumbs" aria-label="Path">
        <a href={to(["catalogs"])}>Catalogs</a> / <span>{namespace}</span>
      </nav>
      {!value && <h1>{name}</h1>}
      {error !== "" && <Empty title={`The catalog ${name} cannot be shown`}><Explained text={error} /></Empty>}
      {!value && error === "" && <Skeleton label={`Loading the catalog ${name}`} />}
      {value && <Shown catalog={value} {...{ namespace, name, version, reload }} state={row ? cell(catalogs, row, "State") : ""} ready={row ? cell(catalogs, row, "Ready") : ""} />}
    </>
  );
}

interface ShownProps {
  catalog: Catalog;
  namespace: string;
  name: string;
  version: string;
  state: string;
  ready: string;
  reload: () => void;
}

function Shown(props: ShownProps): JSX.Element {
  const { catalog, namespace, name, version, reload } = props;
  const target = { resource: "appcatalogs", namespace, name };
  const actions = useActions(target, version);
  const { spec, status } = catalog;
  const paused = spec.pauseUntil !== undefined && new Date(spec.pauseUntil).getTime() > Date.now();
  return (
    <>
      <div class="title-row">
        <h1>{name}</h1>
        <div class="buttons">
          <ActionButton target={target} action="sync" actions={actions} done={reload} />
          {paused ? <ActionButton target={target} action="resume" actions={actions} done={reload} /> : <ActionButton target={target} action="pause" options={{ for: "24h" }} actions={actions} done={reload} />}
          {spec.pinnedRevision !== undefined && <ActionButton target={target} action="unpin" actions={actions} done={reload} />}
        </div>
      </div>
      <div class="sentence">
        <State kind={catalogKind(props.state, props.ready)} text={props.state} />
      </div>
      <dl class="facts">
        <Fact title="Source" value={<a href={to(["history"], { namespace: spec.sourceNamespace })}>{spec.sourceNamespace}</a>} />
        <Fact title="Revision" value={<code>r{status?.revision ?? 0}</code>} />
        <Fact title="Last sync" value={status?.lastSyncedAt ? <Ago time={status.lastSyncedAt} /> : "never"} />
        <Fact title="Workloads" value={String(status?.workloads?.length ?? 0)} />
        {paused && <Fact title="Paused until" value={exact(spec.pauseUntil!)} />}
        {status?.editedBy && <Fact title="Edited by" value={status.editedBy.username} />}
      </dl>
      <Behind namespace={namespace} name={name} />
      <Workloads {...{ namespace, name, version }} source={spec.sourceNamespace} size={status?.workloads?.length ?? 0} />
      <Section title="Feed">
        <Records namespace={namespace} label={`configbutler.ai/catalog=${name}`} version={version} done={reload} />
      </Section>
      <Section title="Revisions">
        {(status?.history ?? []).length === 0 ? <Empty title="No revisions yet" /> : <Revisions {...{ target, actions, reload, history: status!.history! }} current={status?.revision ?? 0} pinned={spec.pinnedRevision} when="Created" />}
      </Section>
    </>
  );
}

function Fact({ title, value }: { title: string; value: JSX.Element | string }): JSX.Element {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{value}</dd>
    </div>
  );
}

// Behind lists the environments that do not hold the newest revision.
function Behind({ namespace, name }: { namespace: string; name: string }): JSX.Element {
  const environments = table("environments").value;
  const own = useMemo(() => environmentsBy().get(`${namespace}/${name}`) ?? [], [environments]);
  const behind = own.filter(isBehind).sort((a, b) => Number(a.revision) - Number(b.revision));
  const [all, setAll] = useState(false);
  const shown = useMemo(() => (all ? behind : behind.slice(0, mostBehind)), [own, all]);
  return (
    <Section title="Behind" count={`${behind.length} of ${own.length}`} actions={<a href={to(["environments"], { q: name })}>All environments of {name}</a>}>
      <Tables of={[environments]} what="environments">
        {() => (
          <List
            label="Environments that are behind"
            columns={environmentColumns}
            items={shown}
            keyOf={(e) => keyOf(e.row)}
            versionOf={(e) => e.row.version}
            open={(e) => go(addressOf("environments", e.row))}
            press={(key, e) => pressOnEnvironment(key, { resource: "environments", namespace: e.row.namespace, name: e.row.name }, addressOf("environments", e.row))}
            empty={own.length === 0 ? <Empty title="No environment uses this catalog" command="kubectl slipstream environment --help" /> : <Empty title="All environments hold the newest revision" />}
          />
        )}
      </Tables>
      <ShowAll size={behind.length} most={mostBehind} all={all} change={setAll} />
    </Section>
  );
}

// Workloads lists what the catalog offers, what is missing in the source first.
function Workloads({ namespace, name, version, source, size }: { namespace: string; name: string; version: string; source: string; size: number }): JSX.Element {
  const { value, error } = useListing({ resource: "catalogworkloads", namespace, labelSelector: `configbutler.ai/catalog=${name}` }, version);
  const of = (row: Row, column: string) => (value ? cell(value, row, column) : "");
  const isMissing = (row: Row) => of(row, "State").startsWith("Missing");
  const rows = [...(value?.rows ?? [])].sort((a, b) => Number(isMissing(b)) - Number(isMissing(a)) || a.name.localeCompare(b.name));
  const missing = rows.filter(isMissing).length;
  // The inbox leads here.
  const part = useRef<HTMLDivElement>(null);
  const wanted = route.value.query.show === "workloads" && value !== undefined;
  useEffect(() => {
    if (wanted) part.current?.scrollIntoView({ block: "start" });
  }, [wanted]);
  const fields: Field<Row>[] = [
    { title: "Workload", cell: (row) => <code>{workloadName(row.name, name)}</code> },
    { title: "State", cell: (row) => <State kind={isMissing(row) ? "warning" : "synced"} text={of(row, "State")} /> },
    { title: "Changed in", cell: (row) => <code>r{of(row, "Revision")}</code> },
    ...(missing > 0 ? [{ title: "Actions", cell: (row: Row) => isMissing(row) && <a href={historyOf(source, workloadName(row.name, name))}>History, to create it again</a> }] : []),
    { title: "Captured", wide: true, end: true, cell: (row) => <Aged text={of(row, "Captured")} received={row.received} /> },
  ];
  return (
    <div ref={part}>
      <Section title="Workloads" count={missing > 0 ? `${missing} missing of ${rows.length}` : rows.length}>
        {missing > 0 && (
          <Notice kind="warning">
            <p>
              The catalog names {count(missing, "workload")} that {missing === 1 ? "does" : "do"} not exist in {source}. Create {missing === 1 ? "it" : "them"} again from {missing === 1 ? "its" : "their"} history, or remove {missing === 1 ? "it" : "them"} from the catalog:
            </p>
            <Command line={["kubectl edit appcatalog", name, "-n", namespace, hello.value?.flags].filter(Boolean).join(" ")} />
          </Notice>
        )}
        {error !== "" && <Notice kind="failed">{error}</Notice>}
        {!value && error === "" && <Skeleton label={`Loading ${count(size, "workload")}`} rows={Math.min(Math.max(size, 1), 8)} />}
        {value && rows.length === 0 && <Empty title="Nothing is offered">No workload of the source matches the catalog.</Empty>}
        {rows.length > 0 && <SimpleTable label="Workloads of the catalog" fields={fields} items={rows} keyOf={(row) => row.name} />}
      </Section>
    </div>
  );
}

// historyOf returns the address of the history of a workload KIND/NAME. Kinds of workloads have regular plurals.
function historyOf(source: string, workload: string): string {
  const [kind = "", name = ""] = workload.split("/");
  return lifeOf(source, `${kind.toLowerCase()}s`, name);
}

// workloadName returns kind and name of the record CATALOG.KIND.NAME.
const workloadName = (record: string, catalog: string): string => record.slice(catalog.length + 1).replace(".", "/");
