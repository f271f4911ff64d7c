// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Git destinations: what was pushed last, what waits, and what is wrong.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { ActionButton, useActions } from "../actions";
import { Cards } from "../cards";
import { useObject } from "../listing";
import { Aged, Ago, Empty, ExternalLink, Notice, State, Tables, scope, useTitle } from "../parts";
import { route, setQuery, to } from "../routes";
import { SimpleTable } from "../simpletable";
import { destinationKind, severity } from "../states";
import { cell, keyOf, type Row, type Table, table } from "../store";
import { count, number } from "../time";
import type { DestinationStatus } from "../types";

interface Destination {
  row: Row;
  status: Row | undefined;
  of: (column: string) => string;
  is: (column: string) => string;
  state: string;
  kind: ReturnType<typeof destinationKind>;
}

function joined(destinations: Table, statuses: Table): Destination[] {
  return [...destinations.rows.values()]
    .map((row): Destination => {
      const status = statuses.rows.get(keyOf(row));
      const of = (column: string) => cell(destinations, row, column);
      const is = (column: string) => (status ? cell(statuses, status, column) : "");
      const notReady = of("Ready") !== "True" && of("Ready") !== "";
      const state = is("State") || (notReady ? of("Reason") || "Not ready" : "No state yet");
      return { row, status, of, is, state, kind: destinationKind(state, is("Error")) };
    })
    .sort((a, b) => severity(a.kind) - severity(b.kind) || keyOf(a.row).localeCompare(keyOf(b.row)));
}

export function GitScreen(): JSX.Element {
  useTitle("Git");
  const [destinations, statuses] = [table("gitdestinations").value, table("gitdestinationstatuses").value];
  const all = useMemo(() => joined(destinations, statuses), [destinations, statuses]);
  return (
    <>
      <h1>Git</h1>
      <Tables of={[destinations, statuses]} what="Git destinations">
        {() =>
          all.length === 0 ? (
            <Empty title={`There are no Git destinations${scope()}`} command="kubectl slipstream mirror --help">
              A GitDestination is a folder on a branch, to which objects of the cluster are written. This command writes the manifests of the first one.
            </Empty>
          ) : (
            <Cards items={all} keyOf={(each) => keyOf(each.row)} card={(each) => <Card of={each} />} />
          )
        }
      </Tables>
    </>
  );
}

function Card({ of }: { of: Destination }): JSX.Element {
  const key = keyOf(of.row);
  const open = route.value.query.open === key;
  const target = { resource: "gitdestinations", namespace: of.row.namespace, name: of.row.name };
  const actions = useActions(target, of.row.version);
  const suspended = of.kind === "stopped" || actions.get("unsuspend")?.allowed === true;
  const pending = of.is("Pending");
  return (
    <article class="card" aria-label={key}>
      <div class="title-row">
        <h2>
          <span class="kind">{of.row.namespace}/</span>
          {of.row.name}
        </h2>
        <div class="buttons">
          <ActionButton target={target} action="sync" actions={actions} small />
          {suspended ? <ActionButton target={target} action="unsuspend" actions={actions} small /> : <ActionButton target={target} action="suspend" actions={actions} small />}
        </div>
      </div>
      <State kind={of.kind} text={of.state} />
      <dl class="facts">
        <Fact title="Repository" value={of.of("Repository")} />
        <Fact title="Branch" value={<code>{of.of("Branch")}</code>} />
        <Fact title="Folder" value={<code>{of.of("Folder")}</code>} />
        <Fact title="Commit" value={of.is("Commit") ? <code>{of.is("Commit")}</code> : "none yet"} />
        <Fact title="Age" value={<Aged text={of.is("Age-of-Commit")} received={of.status?.received} />} />
        <Fact title="Pending" value={pending === "" || pending === "0" ? "0" : <strong>{number(Number(pending))}</strong>} />
        <Fact title="Objects" value={number(Number(of.is("Objects") || 0))} />
        <Fact title="Secrets" value={of.of("Secrets")} />
      </dl>
      {of.is("Error") !== "" && <Notice kind="failed">{of.is("Error")}</Notice>}
      <button type="button" class="quiet small" aria-expanded={open} onClick={() => setQuery({ open: open ? "" : key })}>
        {open ? "Less" : "More"}
      </button>
      {open && <Details of={of} />}
    </article>
  );
}

function Fact({ title, value }: { title: string; value: JSX.Element | string }): JSX.Element | null {
  return value === "" ? null : (
    <div>
      <dt>{title}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Details({ of }: { of: Destination }): JSX.Element {
  const { value, error } = useObject<DestinationStatus>("gitdestinationstatuses", of.row.namespace, of.row.name, of.status?.version ?? "");
  if (error !== "") return <Notice kind="failed">{error}</Notice>;
  const status = value?.status;
  if (!status) return <p class="progress">Loading</p>;
  const watches = status.watches ?? [];
  const troubled = watches.filter((each) => each.state !== "Watching");
  const known = status.attribution;
  return (
    <>
      {status.lastCommit && (
        <p>
          Last commit:{" "}
          <ExternalLink url={status.lastCommit.url}>
            <code>{status.lastCommit.sha.slice(0, 7)}</code>
          </ExternalLink>{" "}
          {status.lastCommit.message} <Ago time={status.lastCommit.time} /> ago. <a href={to(["history"], { commit: status.lastCommit.sha })}>Changes in this commit</a>
        </p>
      )}
      {status.oldestPendingTime && (
        <p>
          The oldest pending change is <Ago time={status.oldestPendingTime} /> old.
        </p>
      )}
      {(status.orphansHeld ?? 0) > 0 && <p>{count(status.orphansHeld!, "file")} without an object are kept, because prune is Never.</p>}
      {known && (
        <p>
          Authors of changes: {number(known.audit)} from the audit log, {number(known.admission)} from admission, {number(known.managedFields)} with only a tool, {number(known.unknown)} unknown.
        </p>
      )}
      <Watches title={`${count(troubled.length, "type")} not watched`} of={troubled} open />
      <Watches title={`${count(watches.length - troubled.length, "type")} watched`} of={watches.filter((each) => each.state === "Watching")} open={false} />
    </>
  );
}

type Watch = NonNullable<NonNullable<DestinationStatus["status"]>["watches"]>[number];

function Watches({ title, of, open }: { title: string; of: Watch[]; open: boolean }): JSX.Element | null {
  if (of.length === 0) return null;
  return (
    <details open={open}>
      <summary>{title}</summary>
      <SimpleTable
        label={title}
        items={of}
        keyOf={(each) => `${each.group}/${each.resource}`}
        fields={[
          { title: "Type", cell: (each) => <code>{each.group === "" ? each.resource : `${each.resource}.${each.group}`}</code> },
          { title: "State", cell: (each) => <State kind={each.state === "Watching" ? "synced" : each.state === "Failing" ? "failed" : "syncing"} text={each.message ? `${each.state}: ${each.message}` : each.state} /> },
          { title: "Objects", end: true, cell: (each) => number(each.objects) },
        ]}
      />
    </details>
  );
}
