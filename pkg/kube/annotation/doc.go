// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package annotation knows which annotations repeat what the object holds, and which show nothing of a Secret.
//
// Two questions are asked of an annotation before it leaves the cluster. HoldsConfiguration reports, of any object, whether a tool
// keeps a copy of the object there. Such a list is never complete, so that of Secrets the other question is asked as well:
// IsHarmless is a short list of keys, and what is not on it is treated like the data.
package annotation
