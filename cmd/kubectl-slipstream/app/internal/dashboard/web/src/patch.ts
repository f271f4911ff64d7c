// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Changes the spec of an object, unless someone else has changed it since the user has seen it.
import type { Target } from "./actions";
import { ApiError, post } from "./api";
import type { Meta } from "./types";

interface Seen {
  metadata: Meta;
  spec: object;
}

// mostTries is the number of tries while only the status changes, which the server writes at any time.
const mostTries = 4;

export async function patchSpec(target: Target, seen: Seen | null, spec: object): Promise<void> {
  let resourceVersion = seen?.metadata.resourceVersion ?? "";
  for (let tries = 1; ; tries++) {
    try {
      await post("/api/patch", { ...target, resourceVersion, spec });
      return;
    } catch (e) {
      if (!(e instanceof ApiError) || e.status !== 409 || seen === null || tries === mostTries) throw e;
      const { object } = await post<{ object: Seen }>("/api/object", target);
      if (JSON.stringify(object.spec) !== JSON.stringify(seen.spec)) throw e;
      resourceVersion = object.metadata.resourceVersion ?? "";
    }
  }
}
