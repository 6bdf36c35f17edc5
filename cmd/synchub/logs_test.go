/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
)

// countingStringer counts how often it is formatted.
type countingStringer struct{ times int }

func (s *countingStringer) String() string {
	s.times++
	return "a word"
}

func TestLoggersAreBuiltLazily(t *testing.T) {
	var output bytes.Buffer
	word := &countingStringer{}
	log := newLogger(v1alpha1.LogConfiguration{Level: "info", Format: "json"}, &output).WithValues("first", word).WithName("one").WithValues("second", word)
	log.V(1).Info("a message that is not logged")
	if word.times != 0 || output.Len() != 0 {
		t.Errorf("the message was formatted %d times: %q", word.times, &output)
	}
	log.Info("this is heard", "third", word)
	for _, part := range []string{`"logger":"one"`, `"msg":"this is heard"`, `"first":"a word"`, `"second":"a word"`, `"third":"a word"`} {
		if !strings.Contains(output.String(), part) {
			t.Errorf("%s is missing in %s", part, &output)
		}
	}
}

// An administrator reads the log beside events and the logs of other programs.
func TestLogHasTimesThatPeopleRead(t *testing.T) {
	for format, time := range map[string]string{"json": `"ts":"20`, "console": "20"} {
		var output bytes.Buffer
		newLogger(v1alpha1.LogConfiguration{Level: "info", Format: format}, &output).Info("this is heard")
		if !strings.Contains(output.String(), time) || !strings.Contains(output.String(), "T") {
			t.Errorf("%s: no ISO 8601 time in %s", format, &output)
		}
	}
}

// The starts of dozens of controllers are of interest only to developers.
func TestStartsOfControllersAreDebugMessages(t *testing.T) {
	for level, logged := range map[string]bool{"info": false, "debug": true} {
		var output bytes.Buffer
		newLogger(v1alpha1.LogConfiguration{Level: level, Format: "json"}, &output).Info("Starting EventSource")
		if output.Len() > 0 != logged {
			t.Errorf("%s: %q", level, &output)
		}
	}
}
