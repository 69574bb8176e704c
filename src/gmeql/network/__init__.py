"""The layered network: which operator stands where, who may feed whom, and the elites found so far."""
