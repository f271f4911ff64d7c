// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The records of a catalog or an environment: what changed, by whom, and the result.
import type { JSX } from "preact";
import { ActionButton, type Target } from "./actions";
import { useListing } from "./listing";
import { Aged, Empty, Notice, Skeleton, State } from "./parts";
import { type Field, SimpleTable } from "./simpletable";
import { recordKind } from "./states";
import { cell, type Row } from "./store";

export function Records({ namespace, label, version, done }: { namespace: string; label: string; version: string; done: () => void }): JSX.Element {
  const { value, error } = useListing({ resource: "syncstatuses", namespace, labelSelector: label, limit: 100 }, version);
  if (error !== "") return <Notice kind="failed">{error}</Notice>;
  if (!value) return <Skeleton label="Loading records" rows={3} />;
  if (value.rows.length === 0) return <Empty title="No records yet">A record is kept of each change and each sync.</Empty>;
  const of = (row: Row, column: string) => cell(value, row, column);
  const fields: Field<Row>[] = [
    { title: "When", cell: (row) => <Aged text={of(row, "Age")} received={row.received} /> },
    { title: "What", cell: (row) => <span class="dim">{of(row, "Type")}</span> },
    { title: "State", cell: (row) => <State kind={recordKind(of(row, "State"), of(row, "Type"))} text={of(row, "State")} /> },
    { title: "Changed", cell: (row) => of(row, "Changed").replaceAll(",", ", ") },
    { title: "By", cell: (row) => <span class="who">{of(row, "By").replaceAll(",", ", ")}</span> },
    { title: "Revision", end: true, wide: true, cell: (row) => (Number(of(row, "Revision")) > 0 ? <code>r{of(row, "Revision")}</code> : "") },
    { title: "Commit", wide: true, cell: (row) => <code>{of(row, "Commit")}</code> },
    { title: "Actions", end: true, cell: (row) => <RecordActions target={{ resource: "syncstatuses", namespace, name: row.name }} state={of(row, "State")} done={done} /> },
  ];
  const newest = [...value.rows].sort((a, b) => (a.at < b.at ? 1 : -1));
  return <SimpleTable label="Records" fields={fields} items={newest} keyOf={(row) => row.name} />;
}

function RecordActions({ target, state, done }: { target: Target; state: string; done: () => void }): JSX.Element | null {
  const kind = recordKind(state);
  if (kind !== "failed" && kind !== "warning") return null;
  return (
    <span class="buttons">
      <ActionButton target={target} action="retry" small done={done} />
      <ActionButton target={target} action="dismiss" small done={done} />
    </span>
  );
}
