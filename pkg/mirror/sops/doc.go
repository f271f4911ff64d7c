// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sops answers how an object is written as a file that SOPS opens with a private key of age.
//
// # The file
//
// It is the object's canonical YAML (pkg/kube/manifest) in which every value is encrypted that is not known to be harmless,
// followed by the block sops: the key of the file, encrypted for each recipient; the rule that says what is encrypted; and
// a code that covers all values, encrypted or not, in their order. Readable are the apiVersion, the kind, the type,
// immutable, the names, the labels and a few annotations (pkg/kube/annotation); other annotations are encrypted as the data is,
// because a tool may keep the data in them. SOPS, Flux and KSOPS open the file without a configuration file of their own.
//
// SOPS decides by a regular expression for keys, and a value is encrypted if any key on its path matches. So the rule
// lists the keys of the annotations of this object, and a label that has one of the keys listed is encrypted as well.
//
// # The same object, the same file
//
// Encryption is usually random, so that the file of an unchanged object would be another one each time, and whoever
// compares would have to remember what was written. Here everything that has to be unpredictable, the keys and the
// nonces, is drawn from a seed that only the server has and from all that the file says:
//
//	HMAC-SHA256(seed, recipients, rule and canonical YAML)  expanded by HKDF, with a name for each use
//
// So an object gives the same bytes for the same recipients, wherever and whenever it is written, and comparing hashes
// of files is enough. Two objects that differ in anything have nothing in common. Who reads a repository learns that a
// file came back to what it was, and nothing else. Who gets hold of the seed opens no file with it, since the keys
// depend on the content as well, but can find out whether a guess of a whole file is right.
//
// Nothing in the file tells when it was written, which Git does: lastmodified is always the same.
package sops
