// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The tabs of one environment: its diff, dependencies, revisions and history.
import type { JSX } from "preact";
import { ActionButton } from "../actions";
import { ChangeList, changeRow, newestFirst } from "../changelist";
import { useListing } from "../listing";
import { Output } from "../output";
import { Ago, Empty, Notice, Skeleton, State } from "../parts";
import { to } from "../routes";
import { SimpleTable, type Field } from "../simpletable";
import type { StateKind } from "../states";
import { cell, type Row } from "../store";
import type { Revision } from "../types";
import type { EnvironmentProps } from "./environment";

export function DiffTab({ diff }: EnvironmentProps): JSX.Element {
  if (diff.exit === undefined && diff.output.length === 0) return <Skeleton label="Computing the diff" rows={4} />;
  return (
    <>
      <p class="hint">What a sync would change, field by field. Each field names its author where one is known. Values of Secrets are hidden.</p>
      <Output result={diff} label="What a sync would change" />
      {diff.error !== "" && diff.exit !== 1 && <Notice kind="failed">{diff.error}</Notice>}
    </>
  );
}

function dependencyKind(state: string): StateKind {
  if (state.startsWith("Copied")) return "synced";
  if (state.startsWith("Changed")) return "waiting";
  return /not required/.test(state) ? "stopped" : "warning";
}

export function DependenciesTab({ target, version }: EnvironmentProps): JSX.Element {
  const query = { resource: "environmentdependencies", namespace: target.namespace, labelSelector: `configbutler.ai/environment=${target.name}` };
  const { value, error } = useListing(query, version);
  if (error !== "") return <Notice kind="failed">{error}</Notice>;
  if (!value) return <Skeleton label="Loading dependencies" rows={4} />;
  if (value.rows.length === 0) return <Empty title="No dependencies">The workloads refer to no ConfigMaps, Secrets or Services, or nothing has been synced yet.</Empty>;
  const of = (row: Row, column: string) => cell(value, row, column);
  const fields: Field<Row>[] = [
    { title: "Type", cell: (row) => of(row, "Type") },
    { title: "Source", cell: (row) => <code>{of(row, "Source")}</code> },
    { title: "Copy", wide: true, cell: (row) => <code>{of(row, "Target")}</code> },
    { title: "State", cell: (row) => <State kind={dependencyKind(of(row, "State"))} text={of(row, "State")} /> },
    { title: "Referred to by", cell: (row) => of(row, "Referred-By").replaceAll(",", ", ") },
    { title: "Keys", wide: true, end: true, cell: (row) => of(row, "Keys") },
  ];
  const worst = [...value.rows].sort((a, b) => Number(of(a, "State") === "Copied") - Number(of(b, "State") === "Copied") || a.name.localeCompare(b.name));
  return <SimpleTable label="Dependencies" fields={fields} items={worst} keyOf={(row) => row.name} />;
}

export function RevisionsTab({ target, environment, actions, reload }: EnvironmentProps): JSX.Element {
  const history = environment.status?.history ?? [];
  if (history.length === 0) return <Empty title="No revisions yet">Each applied revision is listed here, and can be returned to.</Empty>;
  return <Revisions {...{ target, actions, reload, history }} current={environment.status?.appliedRevision ?? 0} pinned={environment.spec.pinnedRevision} when="Applied" />;
}

export function Revisions(props: Pick<EnvironmentProps, "target" | "actions" | "reload"> & { history: Revision[]; current: number; pinned: number | undefined; when: string }): JSX.Element {
  const { target, actions, reload } = props;
  const fields: Field<Revision>[] = [
    {
      title: "Revision",
      cell: (each) => (
        <>
          <code>r{each.revision}</code> {each.revision === props.current && <span class="tag">current</span>} {each.revision === props.pinned && <span class="tag">pinned</span>}
        </>
      ),
    },
    { title: props.when, cell: (each) => <Ago time={each.time} /> },
    { title: "Record", wide: true, cell: (each) => <code>{each.syncStatus}</code> },
    {
      title: "Actions",
      end: true,
      cell: (each) =>
        each.revision === props.pinned ? (
          <ActionButton target={target} action="unpin" actions={actions} small done={reload} />
        ) : each.revision === props.current ? null : (
          <ActionButton target={target} action="rollback" options={{ revision: each.revision }} actions={actions} label={`${each.revision < props.current ? "Roll back" : "Return"} to r${each.revision}`} small done={reload} />
        ),
    },
  ];
  return (
    <>
      <p class="hint">A rollback pins the revision. Automatic syncs wait until it is unpinned.</p>
      <SimpleTable label={`${props.when} revisions`} fields={fields} items={props.history} keyOf={(each) => String(each.revision)} />
    </>
  );
}

export function HistoryTab({ environment, version }: EnvironmentProps): JSX.Element {
  const namespace = environment.spec.targetNamespace;
  const { value, error } = useListing({ resource: "changes", namespace, limit: 100 }, version);
  if (error !== "") return <Notice kind="failed">{error}</Notice>;
  if (!value) return <Skeleton label="Loading changes" rows={4} />;
  const items = [...value.rows].sort(newestFirst).map((row) => changeRow(value, row));
  return (
    <>
      <ChangeList
        label={`Changes of the namespace ${namespace}`}
        items={items}
        namespaces={false}
        empty={
          <Empty title={`No changes of the namespace ${namespace}`} command={`kubectl slipstream mirror --help`}>
            Its objects have a history once a WatchRule mirrors them to Git.
          </Empty>
        }
      />
      {value.continue !== "" && <a href={to(["history"], { namespace })}>All changes of {namespace}</a>}
    </>
  );
}
