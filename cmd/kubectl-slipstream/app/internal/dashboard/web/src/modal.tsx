// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// A dialog over the page.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icons";

// Modal is a native dialog, open as long as it is rendered.
export function Modal(props: { title: string; close: () => void; children: JSX.Element | JSX.Element[]; wide?: boolean }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    dialog.current?.querySelector("h2")?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={props.wide ? "wide" : ""}
      aria-labelledby="dialog-title"
      onCancel={(e) => {
        e.preventDefault();
        props.close();
      }}
    >
      <header>
        <h2 id="dialog-title" tabIndex={-1}>{props.title}</h2>
        <button type="button" class="quiet icon-only" aria-label="Close" onClick={props.close}>
          <Icon of="close" />
        </button>
      </header>
      {props.children}
    </dialog>
  );
}
