// SPDX-License-Identifier: Apache-2.0
// Loaded by node before the GitHub emulator (--require), which has no option for its address and
// would listen on all interfaces: servers listen on the loopback, and say so on stdout. The
// emulator itself is not changed. Node 18 of Debian 12 has WebCrypto, with which the emulator
// checks the tokens of Apps, but does not make it global; Node 20 does.
"use strict";
const net = require("net");

globalThis.crypto ??= require("crypto").webcrypto;

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  if (typeof port !== "number") return listen.call(this, port, ...rest);
  this.once("listening", () => console.log(`listening on ${this.address().port}`));
  return listen.call(this, port, "127.0.0.1", ...rest.filter((one) => typeof one !== "string"));
};
