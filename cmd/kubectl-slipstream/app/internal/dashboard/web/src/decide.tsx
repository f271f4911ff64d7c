// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The dialog in which a user decides about the conflicts of an environment, from wherever one is shown.
import type { JSX } from "preact";
import { type Request, request, useActions } from "./actions";
import { useObject } from "./listing";
import { Modal } from "./modal";
import { Explained, Notice, Skeleton } from "./parts";
import { addressOf } from "./routes";
import { keyOf, table } from "./store";
import { Decisions } from "./screens/conflicts";
import type { Environment } from "./types";

export function Decide({ asked }: { asked: Request }): JSX.Element {
  const { target, done } = asked;
  const version = table("environments").value.rows.get(keyOf(target))?.version ?? "";
  const { value, error } = useObject<Environment>("environments", target.namespace, target.name, version);
  const actions = useActions(target, version);
  const conflicts = value?.status?.conflicts ?? [];
  const active = (value?.status?.activeSyncs ?? []).length > 0;
  const close = () => {
    request.value = null;
    done?.();
  };
  return (
    <Modal title="Decide about conflicts" close={close}>
      <div class="body">
        <p class="subject">
          <code>
            environment/{target.name} in {target.namespace}
          </code>
        </p>
        {error !== "" && (
          <Notice kind="failed">
            <Explained text={error} />
          </Notice>
        )}
        {!value && error === "" && <Skeleton label="Loading the conflicts" rows={3} />}
        {conflicts.length > 0 && <Decisions key={target.name} target={target} refused={actions.refusal("resolve")} conflicts={conflicts} version={version} done={done ?? (() => undefined)} />}
        {value && conflicts.length === 0 && (
          <Notice kind={active ? "syncing" : "stopped"}>
            {active ? "A sync is running. The fields appear here if it finds conflicts." : "There are no conflicts to decide about, or they are not listed yet. This dialog shows them as soon as they are."}
          </Notice>
        )}
      </div>
      <footer>
        <a class="button" href={addressOf("environments", target)} onClick={close}>
          Open the environment
        </a>
        <button type="button" onClick={close}>
          Close
        </button>
      </footer>
    </Modal>
  );
}
