// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive defines how a backup is written to one stream and recognised as
// whole when it is read.
//
// # Format
//
// A tar archive, which any tar unpacks and sha256sum -c verifies. In this order:
//
//	manifest.json    what is in it, first so that a reader knows what will come
//	NAME             each file of the manifest, of the size that the manifest says
//	SHA256SUMS       sums of all files before, the manifest's included
//
// An archive that was cut off lacks the last file or a part of it. Whatever else
// differs from the manifest or the sums is refused as well, and so is what follows
// the end.
package archive
