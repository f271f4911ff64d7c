// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Pipelines: what they send to their sinks, and what is wrong.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { ActionButton, useActions } from "../actions";
import { Cards } from "../cards";
import { useObject } from "../listing";
import { Ago, Empty, Notice, State, Tables, useTitle } from "../parts";
import { type Field, SimpleTable } from "../simpletable";
import { pipelineKind, severity } from "../states";
import { cell, keyOf, type Row, table } from "../store";
import { number } from "../time";
import type { Pipeline } from "../types";

export function PipelinesScreen(): JSX.Element {
  useTitle("Pipelines");
  const pipelines = table("syncpipelines").value;
  const rows = useMemo(() => {
    const kindOf = (row: Row) => pipelineKind(cell(pipelines, row, "State"));
    return [...pipelines.rows.values()].sort((a, b) => severity(kindOf(a)) - severity(kindOf(b)) || a.name.localeCompare(b.name));
  }, [pipelines]);
  return (
    <>
      <h1>Pipelines</h1>
      <Tables of={[pipelines]} what="pipelines">
        {() =>
          rows.length === 0 ? (
            <Empty title="There are no pipelines" command="kubectl slipstream pipeline --help">
              A SyncPipeline sends objects of the cluster to a receiver, such as a search index. This command writes the manifest of the first one.
            </Empty>
          ) : (
            <Cards items={rows} keyOf={keyOf} card={(row) => <Card row={row} of={(column) => cell(pipelines, row, column)} />} />
          )
        }
      </Tables>
    </>
  );
}

type Sink = NonNullable<NonNullable<Pipeline["status"]>["sinks"]>[number];

const sinkFields: Field<Sink>[] = [
  { title: "Sink", cell: (sink) => <strong>{sink.name}</strong> },
  { title: "State", cell: (sink) => <SinkState sink={sink} /> },
  { title: "Delivered", end: true, cell: (sink) => number(sink.delivered ?? 0) },
  { title: "Pending", end: true, cell: (sink) => number(sink.pending ?? 0) },
  { title: "Rejected", end: true, cell: (sink) => number(sink.rejected ?? 0) },
  { title: "Last delivery", end: true, cell: (sink) => <Ago time={sink.lastDeliveryTime} /> },
];

function SinkState({ sink }: { sink: Sink }): JSX.Element {
  if (sink.failures) return <State kind="failed" text={sink.lastError?.message ?? "Failed"} />;
  if (sink.rejected) return <State kind="failed" text={sink.lastError?.message ?? "Rejects objects"} />;
  return sink.pending ? <State kind="syncing" text="Sending" /> : <State kind="synced" text="Takes what it is sent" />;
}

function Card({ row, of }: { row: Row; of: (column: string) => string }): JSX.Element {
  const target = { resource: "syncpipelines", namespace: "", name: row.name };
  const actions = useActions(target, row.version);
  const { value, error } = useObject<Pipeline>("syncpipelines", "", row.name, row.version);
  const state = of("State");
  const suspended = value?.spec.suspend ?? state === "Suspended";
  return (
    <article class="card" aria-label={row.name}>
      <div class="title-row">
        <h2>{row.name}</h2>
        <div class="buttons">
          <ActionButton target={target} action="sync-pipeline" actions={actions} small />
          {suspended ? <ActionButton target={target} action="unsuspend" actions={actions} small /> : <ActionButton target={target} action="suspend" actions={actions} small />}
        </div>
      </div>
      <State kind={pipelineKind(state)} text={state} />
      <dl class="facts">
        <div>
          <dt>Mode</dt>
          <dd>{of("Mode")}</dd>
        </div>
        <div>
          <dt>Objects</dt>
          <dd>{number(Number(of("Objects") || 0))}</dd>
        </div>
        <div>
          <dt>Pending</dt>
          <dd>{number(Number(of("Pending") || 0))}</dd>
        </div>
        <div>
          <dt>Types</dt>
          <dd>{of("Types")}</dd>
        </div>
      </dl>
      {error !== "" && <Notice kind="failed">{error}</Notice>}
      {value?.status?.sinks && <SimpleTable label={`Sinks of ${row.name}`} items={value.status.sinks} keyOf={(sink) => sink.name} fields={sinkFields} />}
    </article>
  );
}
