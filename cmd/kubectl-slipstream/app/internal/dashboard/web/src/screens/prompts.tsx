// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The two prompts of an environment: changes of its catalog, and of the cluster, which are dependencies.
import type { ComponentChildren, JSX } from "preact";
import { ActionButton } from "../actions";
import { Icon } from "../icons";
import { count } from "../time";
import type { EnvironmentProps } from "./environment";

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
  return (
    <Prompt title="Changes of the catalog" action="catalog" open={n > 0 || first} dismissed={dismissed && n > 0} props={props} text={first ? "Nothing has been applied yet." : n > 0 ? `${count(n, "workload")} changed` : `Nothing to take from ${spec.catalogRef.name}.`}>
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
    <Prompt title="Changes of the cluster" action="cluster" open={n > 0} dismissed={dismissed && n > 0} props={props} text={n > 0 ? `${count(n, "object")} that workloads refer to changed` : "The objects that workloads refer to are up to date."}>
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

function Prompt(of: { title: string; action: string; open: boolean; dismissed: boolean; text: string; props: EnvironmentProps; children: ComponentChildren }): JSX.Element {
  const { target, actions, reload } = of.props;
  const id = `prompt-${of.action}`;
  return (
    <section class={`prompt ${of.open && !of.dismissed ? "open" : ""}`} aria-labelledby={id}>
      <h2 id={id}>{of.title}</h2>
      <p>
        <Icon of={of.open ? (of.dismissed ? "stopped" : "waiting") : "synced"} class={of.open ? (of.dismissed ? "stopped" : "waiting") : "synced"} />
        {of.dismissed ? `Dismissed: ${of.text}` : of.text}
      </p>
      {of.open && <ul>{of.children}</ul>}
      {of.open && (
        <div class="buttons">
          <ActionButton target={target} action="sync" options={{ action: of.action }} actions={actions} label="Take" primary done={reload} />
          {of.dismissed ? <ActionButton target={target} action="undismiss" actions={actions} done={reload} /> : <ActionButton target={target} action="dismiss" actions={actions} label="Dismiss" done={reload} />}
        </div>
      )}
    </section>
  );
}
