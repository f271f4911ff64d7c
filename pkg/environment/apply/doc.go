// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply answers whether a cluster takes the steps of a plan, and carries them out.
//
// # The dry run
//
// Before anything is written, the API server is asked about every step: by server-side apply with strict validation, as it
// is done later. Deletions are tried as well, and so are pods of what starts pods: pod security and limit ranges refuse those
// and not what starts them. What the objects add up to is compared with the quotas that count objects, because a dry run uses
// nothing up. If anything is refused, nothing is written, and everything that is refused is named.
//
// In a namespace that is not there, nothing can be tried. Whoever may create it has it created first, and the dry run is made
// in it: only there its policies and quotas are known. A refusal leaves it empty. A mere check creates nothing, and
// says that it could not look.
//
// # Writing
//
// Each write is on condition that the object is the one that was planned with, except for its status: one that somebody has
// made, changed, replaced or deleted meanwhile is left alone and named, and the plan is to be made anew. Steps of one kind that
// follow each other are done at once, and those after them once they are done: what comes later may need what comes earlier.
// Where anything goes wrong, what has begun is finished and nothing else is begun. Whoever dies in between plans anew:
// what has been written is as planned then, and needs no step.
//
// ConfigMaps and Secrets that are immutable, and Jobs whose template is to be another, are deleted and created again. What others
// have put into them goes, and a Job is begun again.
//
// # Secrets
//
// What an API server, or a webhook, says of a Secret may quote it. Of that, errors and reports hold nothing but the fields,
// and the names of quotas, policies and webhooks.
package apply
