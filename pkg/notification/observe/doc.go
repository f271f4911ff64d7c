// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe finds what NotificationSinks may be notified of in objects. It is pure: it depends only on its input.
//
// A lasting Finding is found as long as it lasts, such as an unresolved conflict. Another one, such as a completed sync, is
// found again whenever its object is observed. Keys identify both, so that a caller notifies once.
package observe
