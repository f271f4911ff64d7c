// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package past reads what the mirror has committed: objects as they were at a time, and what a Change changed.
//
// A request names a moment, which is resolved to one commit of the destination's branch; everything it returns is of that commit. The
// directories of the commit are read without file contents. Then the files that the caller selects and may read are read by hash.
//
// # Permissions
//
// The server reads with its own credentials, so every object is shown only if the caller may read its type in its namespace, which the
// path of its file has. The review comes before the content is read. Neither a name nor a path of another object leaves the package: not
// in errors, not in the list of unreadable files, and not in the token of the next page. Objects of other types are counted only in
// namespaces in which the caller may read something.
//
// A destination shows only the folder that it has written: its marker names the destination, now and in the commit that is read. So a
// destination that merely names a folder of another cluster or team shows nothing of it, nor what another owner wrote there before.
//
// # Secrets
//
// Values that the mirror encrypts are masked: the values of a Secret, and its annotations unless they are known to be harmless. Readable
// values need the caller's permission, as each object does, and the server's private key if the file is encrypted. Values from before the
// creation of the namespace need the permission in the whole cluster: they may be of a deleted namespace of another owner.
package past
