// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

import { accessible, phone, wide } from "./accessibility.mjs";
import { automatic, catalogActions, conflict, createdAgain, environmentActions, expected, explained, gitActions, history, outdated, overwritten, pipelineActions, retried, settings, several } from "./actions.mjs";
import { crossOrigin, framed, injected, openedByAttacker, rebound } from "./attacks.mjs";
import { clusterLost, loggedOutByUser, pluginLost, restarted, usedTwice } from "./connection.mjs";
import { expired, hostedRestarted, hostedRights, renewed } from "./hosted.mjs";
import { keyboard, keysOff } from "./keyboard.mjs";
import { compared, large, live, loading, missing, numbers, older, overview, steady } from "./overview.mjs";
import { noPermissions, oneNamespace, viewer } from "./rights.mjs";
import { secretValues } from "./secrets.mjs";

// scenarios are all scenarios, in the order in which they run: those that only look at the page come before those that change something.
export const scenarios = {
  "Screens/Overview": overview,
  "Screens/Numbers": numbers,
  "Screens/Older": older,
  "Screens/Loading": loading,
  "Screens/LiveChange": live,
  "Screens/RowsStay": steady,
  "Access/Viewer": viewer,
  "Access/OneNamespace": oneNamespace,
  "Access/NoPermissions": noPermissions,
  "Accessibility/Light": (scene) => accessible(scene, "light"),
  "Accessibility/Dark": (scene) => accessible(scene, "dark"),
  "Accessibility/Widths": wide,
  "Accessibility/Phone": phone,
  "Accessibility/Keyboard": keyboard,
  "Accessibility/KeysOff": keysOff,
  "Attacks/Rebinding": rebound,
  "Attacks/CrossOrigin": crossOrigin,
  "Attacks/Framing": framed,
  "Attacks/Opener": openedByAttacker,
  "Attacks/Injection": injected,
  "Login/UsedTwice": usedTwice,
  "Login/Restarted": restarted,
  "Login/LoggedOut": loggedOutByUser,
  "Hosted/Rights": hostedRights,
  "Hosted/Renewed": renewed,
  "Hosted/Restarted": hostedRestarted,
  "Hosted/Expired": expired,
  "Connection/ClusterLost": clusterLost,
  "Connection/PluginLost": pluginLost,
  "Actions/Explained": explained,
  "Actions/Overwritten": overwritten,
  "Actions/Environment": environmentActions,
  "Actions/Conflict": conflict,
  "Actions/Retry": retried,
  "Actions/AutoSync": automatic,
  "Actions/Catalog": catalogActions,
  "Actions/Git": gitActions,
  "Actions/Pipeline": pipelineActions,
  "Actions/History": history,
  "Actions/CreatedAgain": createdAgain,
  "Actions/Settings": settings,
  "Actions/Outdated": outdated,
  "Actions/Several": several,
  "Actions/ExpectedConflict": expected,
  "Actions/Secrets": secretValues,
  "Screens/Compared": compared,
  "Screens/Missing": missing,
  "Screens/Large": large,
};
