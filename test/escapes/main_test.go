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

package escapes

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/synchub-dev/synchub/test/framework/suite"
)

// TestMain fails if the libraries that talk to servers log text that could harm its readers.
func TestMain(m *testing.M) {
	var shown atomic.Int64
	klog.SetLogger(funcr.New(func(_, args string) {
		if !isHarmless(args) {
			shown.Add(1)
			fmt.Printf("it is logged: %.1000q\n", args)
		}
	}, funcr.Options{Verbosity: 10}))
	suite.Cleanup(func() error {
		if shown.Load() > 0 {
			return errors.New("a log message could harm its readers")
		}
		return nil
	})
	suite.Main(m)
}
