// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The switch that lets this page change something, where a user needs it.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { messageOf, post } from "./api";
import { Icon } from "./icons";
import { allowChanges } from "./store";

// Allow offers the switch that lets this page change something.
export function Allow(): JSX.Element | null {
  const [error, setError] = useState("");
  if (allowChanges.value) return null;
  const allow = () => void post("/api/allow", { allow: true }).then(() => (allowChanges.value = true), (e) => setError(messageOf(e)));
  return (
    <div class="notice stopped allow">
      <Icon of="lock" />
      <div>
        <p>This page only reads. Changes are made with your own rights.</p>
        <button type="button" onClick={allow}>
          Allow changes
        </button>
        {error && <p role="alert">{error}</p>}
      </div>
    </div>
  );
}
