// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package programs

// raceDetector is true, because this program was built with the race detector.
const raceDetector = true
