// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The keys of the page.
import type { JSX } from "preact";
import { Modal } from "./modal";
import { helpOpen, keyHelp, keysOn, switchKeys } from "./keys";
import { Switch } from "./parts";

export function Help(): JSX.Element {
  return (
    <Modal title="Keys" close={() => (helpOpen.value = false)}>
      <div class="body">
        <Switch label="Use these keys" on={keysOn.value} change={switchKeys} />
        <dl class="keys">
          {keyHelp.map(([keys, does]) => (
            <div key={keys}>
              <dt>
                <kbd>{keys}</kbd>
              </dt>
              <dd>{does}</dd>
            </div>
          ))}
        </dl>
        <p class="hint">Keys do nothing inside inputs. Every action of this page is a command of kubectl slipstream, and its dialog shows which.</p>
      </div>
    </Modal>
  );
}
