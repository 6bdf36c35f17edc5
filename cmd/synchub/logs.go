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
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// logOptions are the flags about logging.
type logOptions struct {
	level, format string
}

// levels maps the values of --log-level to those of zap; debug and trace are logr's V(1) and V(2).
var levels = map[string]zapcore.Level{"error": zapcore.ErrorLevel, "info": zapcore.InfoLevel, "debug": -1, "trace": -2}

func (o *logOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.level, "log-level", "info", "error, info, debug or trace")
	flags.StringVar(&o.format, "log-format", "json", "json or console")
}

func (o *logOptions) validate() error {
	if _, ok := levels[o.level]; !ok {
		return fmt.Errorf("set --log-level to error, info, debug or trace, not %q", o.level)
	}
	if o.format != "json" && o.format != "console" {
		return fmt.Errorf("set --log-format to json or console, not %q", o.format)
	}
	return nil
}

func (o *logOptions) logger(to io.Writer) logr.Logger {
	encoder := zap.JSONEncoder()
	if o.format == "console" {
		encoder = zap.ConsoleEncoder()
	}
	reticently := zap.RawZapOpts(uberzap.WrapCore(func(core zapcore.Core) zapcore.Core { return reticent{core} }))
	return zap.New(encoder, zap.WriteTo(to), zap.Level(levels[o.level]), zap.StacktraceLevel(zapcore.PanicLevel), reticently)
}

// reticent puts what a logger was given into words when that says something. Each reconcile has a logger of its own, and
// hardly any says a word.
type reticent struct{ zapcore.Core }

func (r reticent) With(fields []zapcore.Field) zapcore.Core {
	return reticent{zapcore.NewLazyWith(r.Core, fields)}
}
