// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The two prompts of an environment: changes of its catalog, and of the cluster, which are dependencies.
import type { ComponentChildren, JSX } from "preact";
import { ActionButton } from "../actions";
import { Icon } from "../icons";
import { count } from "../time";
import { DecideButton, type EnvironmentProps } from "./environment";

export function Prompts(props: EnvironmentProps): JSX.Element {
  return (
    <div class="prompts">
      <CatalogPrompt {...props} />
      <ClusterPrompt {...props} />
    </div>
  );
}

const signs: Record<string, string> = { Added: "+", Changed: "~", Removed: "-" };

function CatalogPrompt(props: EnvironmentProps): JSX.Element {
  const { spec, status } = props.environment;
  const changed = status?.changedWorkloads ?? [];
  const n = status?.changedWorkloadCount ?? changed.length;
  const dismissed = Boolean(status?.dismissedCatalogSync) && status?.dismissedCatalogSync === status?.latestCatalogSync;
  const first = (status?.appliedRevision ?? 0) === 0;
  const known = (status?.conflicts ?? []).length > 0;
  return (
    <Prompt title="Changes of the catalog" action="catalog" open={n > 0 || first} dismissed={dismissed && n > 0} conflict={known ? "known" : props.findings.conflicts.length > 0 ? "expected" : ""} props={props} text={first ? "Nothing has been applied yet." : n > 0 ? `${count(n, "workload")} changed` : `Nothing to take from ${spec.catalogRef.name}.`}>
      {changed.slice(0, 12).map((each) => (
        <li key={`${each.kind}/${each.name}`}>
          <code>
            <span class={`sign ${each.changeType.toLowerCase()}`}>{signs[each.changeType] ?? "~"}</span> {each.kind}/{each.name}
          </code>
          <span class="dim"> {each.changeType.toLowerCase()}</span>
        </li>
      ))}
      {n > 12 && <li class="dim">and {count(n - 12, "other")}</li>}
    </Prompt>
  );
}

function ClusterPrompt(props: EnvironmentProps): JSX.Element {
  const { status } = props.environment;
  const changed = status?.changedDependencies ?? [];
  const n = changed.reduce((sum, each) => sum + each.count, 0);
  const catalogDismissed = Boolean(status?.dismissedCatalogSync) && status?.dismissedCatalogSync === status?.latestCatalogSync;
  const dismissed = !status?.latestDependencySync && (Boolean(status?.dismissedDependencySync) || catalogDismissed);
  return (
    <Prompt title="Changes of the cluster" action="cluster" open={n > 0} dismissed={dismissed && n > 0} conflict="" props={props} text={n > 0 ? `${count(n, "object")} that workloads refer to changed` : "The objects that workloads refer to are up to date."}>
      {changed.map((each) => (
        <li key={each.type}>
          <code>
            <span class="sign changed">~</span> {count(each.count, each.type)}
          </code>
        </li>
      ))}
    </Prompt>
  );
}

interface PromptProps {
  title: string;
  action: string;
  open: boolean;
  dismissed: boolean;
  // conflict is known if a sync has found conflicts, and expected if the next one will.
  conflict: "known" | "expected" | "";
  text: string;
  props: EnvironmentProps;
  children: ComponentChildren;
}

function Prompt(of: PromptProps): JSX.Element {
  const { target, actions, reload, findings } = of.props;
  const id = `prompt-${of.action}`;
  const kind = !of.open ? "synced" : of.dismissed ? "stopped" : of.conflict !== "" ? "conflict" : "waiting";
  const take = { target, action: "sync", options: { action: of.action }, actions, done: reload };
  return (
    <section class={`prompt ${of.open && !of.dismissed ? "open" : ""} ${kind}`} aria-labelledby={id}>
      <h2 id={id}>{of.title}</h2>
      <p>
        <Icon of={kind} class={kind} />
        {of.dismissed ? `Dismissed: ${of.text}` : of.text}
      </p>
      {of.open && <ul>{of.children}</ul>}
      {of.open && of.conflict === "known" && <p>Fields are in conflict. They wait for your decision.</p>}
      {of.open && of.conflict === "expected" && <p>{count(findings.conflicts.length, "field")} will be in conflict: changed here and in the catalog. Take the changes, and then decide which side stays.</p>}
      {of.open && (
        <div class="buttons">
          {of.conflict === "known" ? <DecideButton {...of.props} /> : <ActionButton {...take} label={of.conflict === "expected" ? "Take and decide" : "Take"} primary />}
          {of.dismissed ? <ActionButton target={target} action="undismiss" actions={actions} done={reload} /> : <ActionButton target={target} action="dismiss" actions={actions} label="Dismiss" done={reload} />}
        </div>
      )}
    </section>
  );
}
