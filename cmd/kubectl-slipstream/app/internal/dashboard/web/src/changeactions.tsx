// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The ways back from a Change.
import type { JSX } from "preact";
import { ActionButton, type Actions, type Target } from "./actions";

const again = { title: "Create it again", does: "Creates the object as it was before its deletion, with your own rights." };

// ChangeActions are undo and restore, and for a deletion the one way back. history is the address of the history of the object.
export function ChangeActions({ target, actions, operation, history }: { target: Target; actions: Actions; operation: string; history?: string }): JSX.Element {
  const link = history === undefined ? {} : { history };
  if (operation === "Delete") return <ActionButton target={target} action="undo" actions={actions} words={again} {...link} />;
  return (
    <>
      <ActionButton target={target} action="undo" actions={actions} {...link} />
      <ActionButton target={target} action="restore" actions={actions} {...link} />
    </>
  );
}
