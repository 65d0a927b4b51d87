"""Decisions about models, at the place where users import them from."""

from karat.ext.decide.cheapest import Cheapest as Cheapest
from karat.ext.decide.cheapest import cheapest as cheapest
from karat.ext.decide.gate import Gate as Gate
from karat.ext.decide.gate import GateRates as GateRates
from karat.ext.decide.gate import NewRuns as NewRuns
from karat.ext.decide.gate import calibrate_gate as calibrate_gate
from karat.ext.decide.gate import gate as gate
from karat.ext.decide.power import Power as Power
from karat.ext.decide.power import power as power
from karat.ext.decide.race import Race as Race
from karat.ext.decide.race import RaceReplay as RaceReplay
from karat.ext.decide.race import race as race
from karat.ext.decide.race import replay_race as replay_race
from karat.ext.decide.same_encoder import Fingerprint as Fingerprint
from karat.ext.decide.same_encoder import Same as Same
from karat.ext.decide.same_encoder import same as same
from karat.ext.decide.shrink import Shrunk as Shrunk
from karat.ext.decide.shrink import shrink as shrink
