"""Fleets as a platform team would write them: services by model name, pools of several ages, dated prices."""
