// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive defines the format of a backup in one stream and verifies on reading that it is complete.
//
// # Format
//
// A backup is a tar archive, which any tar unpacks and sha256sum -c verifies. Its files are in this order:
//
//	manifest.json    the list of files, first so that a reader knows which ones follow
//	NAME             each file of the manifest, with the size in the manifest
//	SHA256SUMS       checksums of all preceding files, including the manifest
//
// A truncated archive lacks the last file or a part of it. An archive that differs from its manifest or checksums in any
// other way is rejected, as is data after its end.
package archive
