// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package programs

// raceDetector is false, because this program was built without the race detector.
const raceDetector = false
