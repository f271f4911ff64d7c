// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The page of kubectl slipstream dashboard.
import { render } from "preact";
import { isCode, openSession } from "./api";
import { startKeys } from "./keys";
import { startRouting } from "./routes";
import { Shell } from "./shell";
import { follow } from "./stream";
import { applyTheme } from "./theme";

applyTheme();
await openSession();
startRouting();
startKeys();
render(<Shell />, document.getElementById("page")!);
void follow();

// A new link that is opened in this tab changes only the part after the hash.
addEventListener("hashchange", () => {
  if (isCode(location.hash.slice(1))) location.reload();
});
