// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The fields of API objects that the page reads. pkg/apis/configbutler/v1alpha1 describes them.

export interface Meta {
  name: string;
  namespace?: string;
  resourceVersion?: string;
  creationTimestamp?: string;
  generation?: number;
}

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  lastTransitionTime: string;
}

export interface Reference {
  name: string;
  namespace?: string;
}

export interface Revision {
  revision: number;
  time: string;
  syncStatus?: string;
}

export interface SyncError {
  reason: string;
  message: string;
  at: string;
}

export interface Conflict {
  kind: string;
  name: string;
  fields: { field: string; managers?: string[] }[];
}

export interface Environment {
  metadata: Meta;
  spec: {
    catalogRef: Reference;
    targetNamespace: string;
    type?: string;
    autoSync?: boolean;
    shadow?: boolean;
    pinnedRevision?: number;
    ttl?: string;
    syncWindows?: { name: string; kind: string; schedule: string; duration: string; timeZone?: string }[];
    branchWorkloads?: { kind: string; name: string }[];
    baseEnvironmentRef?: { name: string };
  };
  status?: {
    state?: string;
    conditions?: Condition[];
    latestRevision?: number;
    appliedRevision?: number;
    latestCatalogSync?: string;
    dismissedCatalogSync?: string;
    latestDependencySync?: string;
    dismissedDependencySync?: string;
    lastCatalogSyncedAt?: string;
    lastDependencySyncedAt?: string;
    changedWorkloadCount?: number;
    changedWorkloads?: { kind: string; name: string; changeType: string }[];
    changedDependencies?: { type: string; count: number }[];
    activeSyncs?: string[];
    conflicts?: Conflict[];
    notCopied?: { kind: string; name: string; reason: string }[];
    workloadsReady?: { ready: number; total: number };
    lastError?: SyncError;
    automatedBy?: { username: string; time: string };
    expiresAt?: string;
    history?: Revision[];
  };
}

export interface Catalog {
  metadata: Meta;
  spec: { sourceNamespace: string; pauseUntil?: string; previewOnly?: boolean; pinnedRevision?: number };
  status?: {
    conditions?: Condition[];
    revision?: number;
    lastSyncedAt?: string;
    workloads?: { kind: string; name: string; revision: number; missing?: boolean }[];
    history?: Revision[];
    editedBy?: { username: string; time: string };
  };
}

export interface Commit {
  sha: string;
  time?: string;
  message?: string;
  url?: string;
}

export interface Change {
  metadata: Meta;
  spec: {
    object: { apiVersion: string; kind: string; resource: string; namespace?: string; name: string };
    operation: string;
    time: string;
    author?: { username: string; signal: string };
    fieldManager?: string;
    fields?: string[];
    moreFields?: number;
    lines?: { added: number; removed: number };
    reason?: string;
    managedBy?: { tool: string; kind?: string; namespace?: string; name: string };
    bypass?: boolean;
    commits?: (Commit & { destinationRef: Reference; path: string })[];
  };
}

export interface ChangeContents {
  change: Change;
  before: string;
  after: string;
  error?: string;
}

export interface DestinationStatus {
  metadata: Meta;
  status?: {
    state?: string;
    lastCommit?: Commit;
    lastPushTime?: string;
    queueDepth?: number;
    pendingChanges?: number;
    oldestPendingTime?: string;
    objects?: number;
    files?: number;
    lastError?: string;
    nextAttemptTime?: string;
    orphansHeld?: number;
    attribution?: { audit: number; admission: number; managedFields: number; unknown: number };
    watches?: { group: string; version: string; resource: string; state: string; message?: string; objects: number }[];
  };
}

export interface Pipeline {
  metadata: Meta;
  spec: { suspend?: boolean };
  status?: {
    conditions?: Condition[];
    sinks?: {
      name: string;
      delivered?: number;
      pending?: number;
      rejected?: number;
      failures?: number;
      lastDeliveryTime?: string;
      lastError?: { message: string };
      nextAttemptTime?: string;
    }[];
  };
}

export interface Record_ {
  metadata: Meta;
  status: { state: string };
}

// Action is something that the user can do with an object, or the reason why not.
export interface Action {
  action: string;
  title: string;
  allowed: boolean;
  reason: string;
}
